"""Proxies in a judge file's process: pages, claim judge, extractor and model client that call the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from cache.capture import Capture, Evidence
from judges.errors import ExtractionFailed, LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.extractor import ExtractionQuestion, ExtractionReply, ExtractorBase
from judges.isolation.rpc_client import RpcClient
from judges.isolation.serialization import evidence_from_json, evidence_to_json, from_json_value, to_json_value
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.rendering import Style
from judges.verifier import ClaimJudge, ClaimQuestion
from rubrics.verdict import Claim, Usage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference(Evidence):
    """Page whose text and screenshots stay in the service.

    ``requested_url`` is the URL under which it was requested. ``fetch`` fetches the complete page.
    """

    requested_url: str
    fetch: Callable[[str], Awaitable[Evidence]]

    async def complete_page(self) -> Evidence:
        return await self.fetch(self.requested_url)


class RemotePages:
    """Pages of one run: ``evidence_for`` fetches the complete page, ``reference`` only its capture and digests."""

    def __init__(self, rpc: RpcClient, run: str) -> None:
        self._rpc = rpc
        self._run = run

    async def reference(self, url: str) -> Evidence:
        """Return the page without its text and screenshots. Raises the same errors as ``evidence_for``."""
        seen = await self._rpc.call("look", run=self._run, url=url)
        capture, digests = from_json_value(seen["capture"], Capture), tuple(seen["digests"])
        return EvidenceReference(capture=capture, text="", digests=digests, requested_url=url, fetch=self.evidence_for)

    async def evidence_for(self, url: str) -> Evidence:
        """Return the page with its text and screenshots.

        Raises:
            CacheError: the page does not exist or cannot be fetched.
        """
        return Evidence(**evidence_from_json(await self._rpc.call("page", run=self._run, url=url)))


class RemoteClaimJudge(ClaimJudge):
    """Claim judge that calls the service. ``answer`` is the answer text that the service already has."""

    def __init__(self, rpc: RpcClient, run: str, model: str, *, answer: str) -> None:
        self._rpc = rpc
        self._run = run
        self.model = model
        self._answer = answer

    async def settle(self, question: ClaimQuestion, *, cache_only: bool = False) -> Verdict:
        response = await self._rpc.call(
            "judge",
            run=self._run,
            model=self.model,
            claim=to_json_value(question.claim, Claim),
            task=question.task,
            answer=None if question.answer == self._answer else question.answer,
            page=_page_reference(question.evidence),
            trials=question.trials,
            shots=question.use_screenshot,
            cache_only=cache_only,
            leaf=structlog.contextvars.get_contextvars().get("leaf"),
        )
        if response is None:
            raise ReplyNotCached
        verdict: Verdict = from_json_value(response, Verdict)
        return verdict


class RemoteExtractor(ExtractorBase):
    """Extractor that calls the service and parses the replies into the judge file's classes."""

    def __init__(self, rpc: RpcClient, run: str, model: str, *, answer: str, style: Style) -> None:
        self._rpc = rpc
        self._run = run
        self.model = model
        self._answer = answer
        self.style = style

    async def ask(self, question: ExtractionQuestion) -> ExtractionReply:
        params: dict[str, Any] = {
            "run": self._run,
            "model": self.model,
            "schema": describe_schema(question.schema),
            "prompt": question.prompt,
            "task": question.task,
            "answer": None if question.answer == self._answer else question.answer,
            "page": _page_reference(question.evidence),
            "instruction": question.instruction,
            "shots": question.use_screenshot,
        }
        try:
            response, reply = await _read_into(question.schema, self._rpc, "extract", params, strict=False)
        except LLMOutputUnusable as error:
            raise ExtractionFailed(
                f"extraction failed: {error}", cause_reason=error.reason, usage=error.usage
            ) from error
        return ExtractionReply(reply=reply, prompt=response["prompt"], evidence=tuple(response["evidence"]))

    async def with_text(self, evidence: Evidence) -> Evidence:
        if isinstance(evidence, EvidenceReference):
            return replace_text(evidence, await evidence.complete_page())
        return evidence


class RemoteModel:
    """``LLMClient`` that calls a model of the service with the RPC method ``call``: the run's own or a provider's."""

    def __init__(self, rpc: RpcClient, call: str, **params: Any) -> None:
        self._rpc = rpc
        self._call = call
        self._params = params

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
        _, reply = await _read_into(request.schema, self._rpc, self._call, params, strict=request.purpose == "verify")
        return reply

    async def aclose(self) -> None:
        """Do nothing: the service's client stays open."""


def describe_schema(schema: ReplyType) -> dict[str, str]:
    """Return the fields of the ``ReplySchema`` of a class, which is sent to the service."""
    return {"name": schema_name(schema), "text": json.dumps(json_schema_of(schema))}


def replace_text(reference: EvidenceReference, whole: Evidence) -> EvidenceReference:
    """Return ``reference`` with the text and links of the complete page."""
    return replace(reference, capture=whole.capture, text=whole.text, links=whole.links)


def _page_reference(evidence: Evidence | None) -> Any:
    if evidence is None:
        return None
    return evidence.requested_url if isinstance(evidence, EvidenceReference) else evidence_to_json(evidence)


async def _read_into(
    schema: ReplyType | None, rpc: RpcClient, call: str, params: Mapping[str, Any], *, strict: bool
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
        response = await rpc.call(call, **request)
        usage = before + from_json_value(response["usage"], Usage)
        text, model = str(response["text"]), str(response["model"])
        try:
            parsed = read_reply(RawReply(text=text, finish=FinishReason.STOP, model=model), schema, strict=strict)
        except LLMOutputUnusable as error:
            error.usage = usage
            if unusable is not None or error.kind is UnusableKind.EMPTY:
                raise
            before, unusable = usage, error.kind
            continue
        return response, LLMReply(text=text, parsed=parsed, model=model, usage=usage, cached=bool(response["cached"]))
