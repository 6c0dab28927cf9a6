"""Proxies in a judge file's process: pages, claim judge, extractor and model client that call the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cache.capture import Evidence
from judges.errors import ExtractionFailed, LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.extractor import ExtractionQuestion, ExtractionReply, ExtractorBase
from judges.isolation.rpc_client import RpcClient
from judges.isolation.serialization import Content, evidence_from_json, evidence_to_json, from_json_value, to_json_value
from judges.llm.client import LLMReply, LLMRequest, Purpose
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.rendering import Style
from judges.settling import JUDGED_LEAF
from judges.verifier import ClaimJudge, ClaimQuestion
from rubrics.verdict import Claim, Usage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference(Evidence):
    """Page whose text and screenshots stay in the service.

    ``requested_url`` is the URL under which it was requested. ``pages`` returns the complete page.
    """

    requested_url: str
    pages: RemotePages

    async def complete_page(self) -> Evidence:
        return await self.pages.evidence_for(self.requested_url)

    async def with_text(self) -> EvidenceReference:
        """Return the reference with the text and links of the page."""
        page = await self.pages.fetch(self.requested_url, Content.TEXT)
        return replace(self, capture=page.capture, text=page.text, links=page.links)


class RemotePages:
    """Pages of one run: ``evidence_for`` fetches the complete page, ``reference`` only its capture and digests."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc

    async def reference(self, url: str) -> Evidence:
        """Return the page without its text and screenshots. Raises the same errors as ``evidence_for``."""
        page = await self.fetch(url, None)
        return EvidenceReference(capture=page.capture, text="", digests=page.digests, requested_url=url, pages=self)

    async def evidence_for(self, url: str) -> Evidence:
        """Return the page with its text and screenshots.

        Raises:
            CacheError: the page does not exist or cannot be fetched.
        """
        return await self.fetch(url, Content.PAGE)

    async def fetch(self, url: str, content: Content | None) -> Evidence:
        """Return the page with this content. Raises the same errors as ``evidence_for``."""
        page = await self._rpc.call("evidence", url=url, content=content)
        return Evidence(**evidence_from_json(page))


class _ServiceCaller:
    """Sender of questions to the service. ``answer`` is the answer text that the service already has."""

    def __init__(self, rpc: RpcClient, model: str, *, answer: str, style: Style) -> None:
        self._rpc = rpc
        self.model = model
        self.style = style
        self._answer = answer

    def _params(self, question: ClaimQuestion | ExtractionQuestion) -> dict[str, Any]:
        """Return the parameters that claims and extractions have in common."""
        return {
            "model": self.model,
            "task": question.task,
            "answer": None if question.answer == self._answer else question.answer,
            "page": _page_reference(question.evidence),
            "shots": question.use_screenshot,
        }


class RemoteClaimJudge(_ServiceCaller, ClaimJudge):
    """Claim judge that calls the service."""

    async def settle(self, question: ClaimQuestion, *, cache_only: bool = False) -> Verdict:
        response = await self._rpc.call(
            "judge",
            **self._params(question),
            claim=to_json_value(question.claim, Claim),
            trials=question.trials,
            cache_only=cache_only,
            leaf=JUDGED_LEAF.get(),
        )
        if response is None:
            raise ReplyNotCached
        verdict: Verdict = from_json_value(response, Verdict)
        return verdict


class RemoteExtractor(_ServiceCaller, ExtractorBase):
    """Extractor that calls the service and parses the replies into the judge file's classes."""

    async def ask(self, question: ExtractionQuestion) -> ExtractionReply:
        params = self._params(question) | {
            "schema": describe_schema(question.schema),
            "prompt": question.prompt,
            "instruction": question.instruction,
        }
        try:
            response, reply = await _read_into(question.schema, self._rpc, params, purpose="extract")
        except LLMOutputUnusable as error:
            raise ExtractionFailed(
                f"extraction failed: {error}", cause_reason=error.reason, usage=error.usage
            ) from error
        return ExtractionReply(reply=reply, prompt=response["prompt"], evidence=tuple(response["evidence"]))

    async def with_text(self, evidence: Evidence) -> Evidence:
        return await evidence.with_text() if isinstance(evidence, EvidenceReference) else evidence


class RemoteModel:
    """``LLMClient`` that calls a model of the service: the one of the run, or any of a ``provider``."""

    def __init__(self, rpc: RpcClient, *, provider: str | None = None) -> None:
        self._rpc = rpc
        self._params = {"provider": provider}

    async def complete(self, request: LLMRequest) -> LLMReply:
        """See ``LLMClient.complete``."""
        params = {
            **self._params,
            "model": request.model,
            "messages": [dict(message) for message in request.messages],
            "schema": None if request.schema is None else describe_schema(request.schema),
            "purpose": request.purpose,
            "vote": request.vote,
            "params": dict(request.params),
        }
        _, reply = await _read_into(request.schema, self._rpc, params, purpose=request.purpose)
        return reply

    async def aclose(self) -> None:
        """Do nothing: the service's client stays open."""


def describe_schema(schema: ReplyType) -> dict[str, str]:
    """Return the fields of the ``ReplySchema`` of a class, which is sent to the service."""
    return {"name": schema_name(schema), "text": json.dumps(json_schema_of(schema))}


def _page_reference(evidence: Evidence | None) -> Any:
    if evidence is None:
        return None
    return evidence.requested_url if isinstance(evidence, EvidenceReference) else evidence_to_json(evidence)


async def _read_into(
    schema: ReplyType | None, rpc: RpcClient, params: Mapping[str, Any], *, purpose: Purpose
) -> tuple[Mapping[str, Any], LLMReply]:
    """Call the service and parse the reply into ``schema``; ask once more if it does not match.

    Return the service's message and the reply.

    Raises:
        JudgeError: raised by the service.
        LLMOutputUnusable: neither reply matches.
    """
    before, unusable = Usage(), None
    while True:
        request = params if unusable is None else {**params, "unusable": unusable.value}
        response = await rpc.call("complete", **request)
        usage = before + from_json_value(response["usage"], Usage)
        text, model = str(response["text"]), str(response["model"])
        try:
            parsed = read_reply(RawReply(text=text, finish=FinishReason.STOP, model=model), schema, purpose=purpose)
        except LLMOutputUnusable as error:
            error.usage = usage
            if unusable is not None or error.kind is UnusableKind.EMPTY:
                raise
            before, unusable = usage, error.kind
            continue
        return response, LLMReply(text=text, parsed=parsed, model=model, usage=usage, cached=bool(response["cached"]))
