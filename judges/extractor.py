"""Extraction of values from an answer or a page into a pydantic class.

A failed extraction raises. An empty value would look like an answer that says nothing.

URLs and list items that do not occur in the source text are removed from extracted values. A URL that occurs nowhere in
the source was invented by the model. A list item is removed if none of its names and numbers occurs there. Works on any
pydantic value. Other content of text fields is checked by verification, not here.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import AnyUrl, BaseModel, ValidationError

from answers.citations import CACHED_CHARS, unique_urls
from cache.capture import Evidence
from cache.urls import canonical_key
from judges.cpu_bound import run_cpu_bound
from judges.errors import ExtractionFailed, LLMError
from judges.grounding.folding import fold
from judges.llm.client import LLMReply
from judges.llm.json_schema import ReplyType
from judges.prompting.rendering import PromptedModel, Question, Style, render_extraction
from rubrics.verdict import Reason, Usage

S = TypeVar("S", bound=BaseModel)

_ADDRESS = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)
_NAME_OR_NUMBER = re.compile(r"\b(?:[A-Z]\w{2,}|\w*\d\w*)")
_URL_CHAR = re.compile(r"[\w/?&=%#-]")
_MAX_SEARCHED_CHARS: Final = 100_000_000
"""Limit of searched characters. Hundreds of values that a long page does not contain are within it."""
_LEAST_SEARCHED_CHARS: Final = 4_000
"""Cost of a search in a short text, because folding a word or computing a key takes longer than the search."""
_DROPPED: Final = object()


class KnownUrls:
    """URLs that occur in a text and among links, and the words of the text.

    Values are searched in the text until ``_MAX_SEARCHED_CHARS`` characters have been searched. After that, URLs count
    as unknown and words as known.
    """

    def __init__(self, text: str, links: Iterable[str] = ()) -> None:
        self._text = text
        self._folded = fold(text).text
        self._searchable = _MAX_SEARCHED_CHARS
        self._keys = {canonical_key(_absolute(url)) for url in (*unique_urls(text), *links)}

    def __contains__(self, url: str) -> bool:
        """Return whether ``url`` occurs in any spelling of the same page, or literally in the text."""
        trimmed = url.strip()
        if not self._may_search(_LEAST_SEARCHED_CHARS):
            return False
        if canonical_key(_absolute(trimmed)) in self._keys:
            return True
        return bool(trimmed) and self._may_search(len(self._text)) and self._occurs(trimmed)

    def knows_none_of(self, words: Iterable[str]) -> bool:
        """Return whether there are words and none of them occurs in the text."""
        has_words = False
        for word in words:
            has_words = True
            if not self._may_search(max(len(self._text), _LEAST_SEARCHED_CHARS)) or fold(word).text in self._folded:
                return False
        return has_words

    def _occurs(self, url: str) -> bool:
        """Return whether the text contains this URL, and not only as the beginning of a longer one."""
        at = self._text.find(url)
        while at >= 0:
            if not _URL_CHAR.match(self._text, at + len(url)):
                return True
            at = self._text.find(url, at + 1)
        return False

    def _may_search(self, chars: int) -> bool:
        self._searchable -= chars
        return self._searchable >= 0


def drop_invented(value: S, known: KnownUrls) -> tuple[S, tuple[str, ...]]:
    """Return ``value`` without invented URLs and list items, and what was removed.

    In a list, the entry is removed. A field becomes None if its type allows it, else an empty string.

    Raises:
        pydantic.ValidationError: the class allows neither.
    """
    dropped: list[str] = []
    fields = _pruned(value.model_dump(by_alias=True, warnings=False), known, dropped, replacement=None)
    if not dropped:
        return value, ()
    schema = type(value)
    try:
        return schema.model_validate(fields), tuple(dropped)
    except ValidationError:
        return schema.model_validate(
            _pruned(value.model_dump(by_alias=True, warnings=False), known, [], replacement="")
        ), tuple(dropped)


def _pruned(value: Any, known: KnownUrls, dropped: list[str], *, replacement: str | None) -> Any:
    pruned = _kept(value, known, dropped, replacement=replacement)
    return replacement if pruned is _DROPPED else pruned


def _kept(value: Any, known: KnownUrls, dropped: list[str], *, replacement: str | None) -> Any:
    if isinstance(value, str | AnyUrl):
        url = str(value)
        if _ADDRESS.fullmatch(url) and url not in known:
            dropped.append(url)
            return _DROPPED
        return value
    if isinstance(value, dict):
        return {key: _pruned(item, known, dropped, replacement=replacement) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        listed = []
        for item in value:
            if isinstance(item, dict) and _is_invented(texts := _texts(item), known):
                dropped.append(", ".join(texts))
            elif (kept := _kept(item, known, dropped, replacement=replacement)) is not _DROPPED:
                listed.append(kept)
        return type(value)(listed)
    return value


def _is_invented(texts: Iterable[str], known: KnownUrls) -> bool:
    """Return whether an item with these texts has names or numbers and none of them occurs in the source."""
    words: list[str] = []
    for text in texts:
        if not _ADDRESS.fullmatch(text):
            words += _NAME_OR_NUMBER.findall(text)
        elif text in known:
            return False
    return known.knows_none_of(words)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, AnyUrl):
        return [str(value)]
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return []
    return [text for item in (value.values() if isinstance(value, dict) else value) for text in _texts(item)]


def _absolute(url: str) -> str:
    return url if "://" in url else f"https://{url}"


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(Generic[S]):
    """Extracted values, with the id of the prompt and the usage."""

    value: S
    prompt: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionQuestion:
    """Values to read: those that ``prompt`` asks for, from the page of ``evidence`` or else from the answer."""

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
    async def ask(self, schema: ReplyType, question: ExtractionQuestion) -> ExtractionReply:
        """Send the extraction request to the model.

        Raises:
            ExtractionFailed: there is no usable reply.
        """

    async def with_text(self, evidence: Evidence) -> Evidence:
        """Return the page with its text, which is needed to detect invented values."""
        return evidence

    async def extract(self, schema: type[S], question: ExtractionQuestion) -> Extraction[S]:
        """Return the values that a question asks for.

        Raises:
            ExtractionFailed: there is no usable reply, or it does not fit ``schema`` without its invented URLs.
        """
        answer, evidence = question.answer, question.evidence
        if evidence is not None and self.style is Style.NATIVE:
            evidence = await self.with_text(evidence)
        extraction_reply = await self.ask(schema, replace(question, evidence=evidence))
        reply = extraction_reply.reply
        value = _parsed_as(reply, schema)
        if self.style is Style.NATIVE:
            texts = [answer] if evidence is None else [evidence.text, *(target for _, target in evidence.links)]
            value, dropped = await run_cpu_bound(
                lambda: _without_invented_urls(value, answer, evidence, reply.usage), *texts, limit_chars=CACHED_CHARS
            )
            if dropped:
                log.warning("invented values dropped", extra={"dropped": dropped, "schema": schema.__name__})
        return Extraction(value=value, prompt=extraction_reply.prompt, usage=reply.usage)


class Extractor(PromptedModel, ExtractorBase):
    """Extractor that asks one model."""

    async def ask(self, schema: ReplyType, question: ExtractionQuestion) -> ExtractionReply:
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
        request = rendered.request(self.model, schema, purpose="extract", params=self._params)
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
