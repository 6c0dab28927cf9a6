"""Extraction of values from an answer or a page into a pydantic class.

A failed extraction raises. An empty value would look like an answer that says nothing.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from answers.citations import CACHED_CHARS
from cache.capture import Evidence
from judges.cpu_bound import run_cpu_bound
from judges.errors import ExtractionFailed, LLMError
from judges.grounding.provenance import KnownUrls, drop_invented
from judges.llm.client import LLMReply
from judges.llm.json_schema import ReplyType
from judges.prompted_model import PromptedModel
from judges.prompting.rendering import Question, Style, render_extraction
from rubrics.verdict import Reason, Usage

log = logging.getLogger(__name__)

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(Generic[S]):
    """Extracted values. ``dropped`` lists URLs from the model's reply that do not occur in the text it was shown."""

    value: S
    prompt: str
    model: str
    usage: Usage
    cached: bool = False
    dropped: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionQuestion:
    """Values to read: those that ``prompt`` asks for, from the page of ``evidence`` or else from the answer."""

    schema: ReplyType
    prompt: str
    task: str
    answer: str
    evidence: Evidence | None = None
    instruction: str | None = None
    use_screenshot: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReply:
    """Usable reply to an extraction request, not yet checked. ``evidence`` holds the digests of the page shown."""

    reply: LLMReply
    prompt: str
    evidence: tuple[str, ...] = ()


class ExtractorBase(ABC):
    """Base class of extractors. Subclasses send requests to ``model`` directly or through another process.

    In the native style, invented URLs are dropped. Public scripts get the reply unchanged.
    """

    model: str
    style: Style

    @abstractmethod
    async def ask(self, question: ExtractionQuestion) -> ExtractionReply:
        """Send the extraction request to the model.

        Raises:
            ExtractionFailed: there is no usable reply.
        """

    async def with_text(self, evidence: Evidence) -> Evidence:
        """Return the page with its text, which is needed to detect invented values."""
        return evidence

    async def extract(
        self,
        schema: type[S],
        prompt: str,
        *,
        task: str,
        answer: str,
        evidence: Evidence | None = None,
        instruction: str | None = None,
        use_screenshot: bool = True,
    ) -> Extraction[S]:
        """Return the values that ``prompt`` asks for. Arguments as for ``ExtractionQuestion``.

        Raises:
            ExtractionFailed: there is no usable reply, or it does not fit ``schema`` without its invented URLs.
        """
        if evidence is not None and self.style is Style.NATIVE:
            evidence = await self.with_text(evidence)
        extraction_reply = await self.ask(
            ExtractionQuestion(
                schema=schema,
                prompt=prompt,
                task=task,
                answer=answer,
                evidence=evidence,
                instruction=instruction,
                use_screenshot=use_screenshot,
            )
        )
        reply = extraction_reply.reply
        value = _parsed_as(reply, schema)
        dropped: tuple[str, ...] = ()
        if self.style is Style.NATIVE:
            texts = [answer] if evidence is None else [evidence.text, *(target for _, target in evidence.links)]
            value, dropped = await run_cpu_bound(
                lambda: _without_invented_urls(value, answer, evidence, reply.usage), *texts, limit_chars=CACHED_CHARS
            )
        if dropped:
            log.warning("invented values dropped", extra={"dropped": dropped, "schema": schema.__name__})
        return Extraction(
            value=value,
            prompt=extraction_reply.prompt,
            model=reply.model,
            usage=reply.usage,
            cached=reply.cached,
            dropped=dropped,
            evidence=extraction_reply.evidence,
        )


class Extractor(PromptedModel, ExtractorBase):
    """Extractor that asks one model."""

    async def ask(self, question: ExtractionQuestion) -> ExtractionReply:
        evidence, page = question.evidence, None
        if evidence is not None:
            page = await self._pages.prepare(evidence, use_screenshot=question.use_screenshot)
        shown = Question(
            task=question.task,
            answer=question.answer,
            claim=question.prompt,
            instruction=question.instruction,
            page=page,
        )
        rendered = await run_cpu_bound(
            lambda: render_extraction(shown, self._block_builder, self.style),
            *(question.answer, question.task, question.prompt, "" if page is None else page.links),
        )
        request = rendered.request(self.model, question.schema, purpose="extract", params=self._params)
        try:
            reply = await self._llm.complete(request)
        except LLMError as error:
            raise ExtractionFailed(
                f"extraction failed: {error}", cause_reason=error.reason, usage=error.usage
            ) from error
        if reply.text_only and page is not None and not page.text.strip():
            raise ExtractionFailed(
                f"extraction failed: {self.model} does not accept images, and this page has no text",
                cause_reason=Reason.LLM_REJECTED,
                usage=reply.usage,
            )
        return ExtractionReply(reply=reply, prompt=rendered.prompt, evidence=() if page is None else page.digests)


def _parsed_as(reply: LLMReply, schema: type[S]) -> S:
    if isinstance(reply.parsed, schema):
        return reply.parsed
    raise ExtractionFailed(
        "extraction failed: the model client returned no parsed reply",
        cause_reason=Reason.LLM_OUTPUT_UNUSABLE,
        usage=reply.usage,
    )


def _without_invented_urls(value: S, answer: str, evidence: Evidence | None, usage: Usage) -> tuple[S, tuple[str, ...]]:
    """Return the value without invented URLs, and those URLs.

    A URL is accepted if it occurs in the shown text, in the page's links, or is the page's own.
    """
    if evidence is None:
        known = KnownUrls(answer)
    else:
        capture = evidence.capture
        own_urls = [url for url in (capture.url, capture.final_url) if url]
        known = KnownUrls(evidence.text, [*own_urls, *(target for _, target in evidence.links)])
    try:
        return drop_invented(value, known)
    except ValidationError as error:
        raise ExtractionFailed(
            f"extraction failed: without its invented URLs the reply does not match {type(value).__name__}",
            cause_reason=Reason.LLM_OUTPUT_UNUSABLE,
            usage=usage,
        ) from error
