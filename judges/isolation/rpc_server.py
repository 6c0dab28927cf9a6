"""RPC methods that the service offers to a task file's process: ``judge``, ``complete`` and ``evidence``.

Prompts and votes stay in the service; only claims and verdicts are exchanged. The process refers to a page by its URL.
It sends a whole page only if the task file created it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture import Evidence
from cache.single_flight import LRUCache
from judges.errors import JudgeBug, ReplyNotCached, UnusableKind
from judges.extractor import ExtractionQuestion, Extractor
from judges.forbidden_sources import NONE_FORBIDDEN, ForbiddenSources
from judges.isolation.rpc_connection import RpcHandler
from judges.isolation.serialization import (
    Content,
    from_json_value,
    page_from_json,
    page_to_json,
    to_base64,
    to_json_value,
)
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.json_schema import ReplySchema, ReplyType, json_schema_of
from judges.llm.observed import ObservedLLM
from judges.llm.remote import repair_request
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult, Style
from judges.registry import Judge
from judges.settling import JUDGED_LEAF, Progress
from judges.verifier import ClaimQuestion, Verifier
from rubrics.verdict import Claim, Usage, Verdict

PAGE_CACHE_BYTES: Final = 16 * 1024 * 1024
MAX_TRIALS: Final = 99
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeJob:
    """Task file to run on an answer, with the services that it may use.

    Attributes:
        model: Bare model name.
        llm: Model client; applies its own limits, as ``evidence_for`` does.
        bodies: Bodies of the captures that ``evidence_for`` returns.
        verifier: Class, or function that creates an object, that judges claims.
        progress: Called with the numbers of settled and known leaves.
        deadline_s: Leaves that are not settled in time are not judged, and the result is incomplete.
        forbidden: Sources that do not count.
    """

    judge: Judge
    answer: Answer
    agent: str
    model: str
    llm: LLMClient
    block_builder: BlockBuilder
    preparer: PagePreparer
    evidence_for: Callable[[str], Awaitable[Evidence]]
    bodies: BlobStore
    verifier: Callable[..., Verifier] = Verifier
    style: Style = Style.NATIVE
    progress: Progress | None = None
    deadline_s: float | None = None
    forbidden: ForbiddenSources = NONE_FORBIDDEN
    logger: logging.Logger = _log


class RpcServer:
    """RPC methods for one task file.

    ``provider_client`` returns the client of a provider, for task files that may choose one.
    """

    def __init__(self, job: JudgeJob, *, provider_client: Callable[[str], LLMClient] | None = None) -> None:
        self._job = job
        self._provider_client = provider_client
        # Pages that the task file created must not be cached as other pages of the same URL.
        self._own_preparer = PagePreparer(job.block_builder)
        # The newest page is cached regardless of its size: otherwise every claim on it would load it again.
        self._pages: LRUCache[str, Evidence] = LRUCache(PAGE_CACHE_BYTES, keeps_newest=True)

    def handlers(self) -> dict[str, RpcHandler]:
        """Return the handlers by method name."""
        return {"judge": self._judge, "complete": self._complete, "evidence": self._evidence}

    async def _judge(self, params: Mapping[str, Any]) -> Any:
        question = ClaimQuestion(
            claim=from_json_value(params.get("claim"), Claim),
            trials=from_json_value(params.get("trials"), int),
            cache_only=bool(params.get("cache_only")),
            **await self._question_fields(params),
        )
        if not 1 <= question.trials <= MAX_TRIALS or question.trials % 2 == 0:
            raise JudgeBug(f"the number of votes must be odd and at most {MAX_TRIALS}, not {question.trials}")
        judge = self._job.verifier(self._job.llm, _text(params, "model"), **self._prompting(params))
        JUDGED_LEAF.set(str(params.get("leaf") or ""))  # each call has a task of its own
        try:
            return to_json_value(await judge.settle(question), Verdict)
        except ReplyNotCached:
            return None

    async def _complete(self, params: Mapping[str, Any]) -> Any:
        """Return the reply to the messages of a task file, or to an extraction, whose prompt is written here."""
        if params.get("provider") is not None and self._provider_client is not None:
            return _reply_value(await self._provider_client(_text(params, "provider")).complete(_request_in(params)))
        llm = _repairing(self._job.llm, params)
        if "prompt" not in params:
            return _reply_value(await llm.complete(_request_in(params)))
        extractor = Extractor(llm, _text(params, "model"), **self._prompting(params))
        extraction = await extractor.ask(
            _schema(params.get("schema")),
            ExtractionQuestion(
                prompt=_text(params, "prompt"),
                instruction=from_json_value(params.get("instruction"), str | None),
                **await self._question_fields(params),
            ),
        )
        return {**_reply_value(extraction.reply), "prompt": extraction.prompt, "evidence": list(extraction.evidence)}

    async def _evidence(self, params: Mapping[str, Any]) -> Any:
        """Return a stored body by its digest, or a page by its URL with the requested content."""
        content = from_json_value(params.get("content"), Content | None)
        if content is Content.BODY:
            return await asyncio.to_thread(to_base64, await self._job.bodies.get(_text(params, "sha256")))
        evidence = await self._evidence_of(_text(params, "url"))
        if content is None:
            return page_to_json(replace(evidence, screenshots=(), text="", links=(), hidden_text=""), Evidence)
        if content is Content.TEXT:
            evidence = replace(evidence, screenshots=())
        return await asyncio.to_thread(page_to_json, evidence, Evidence)

    def _prompting(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the verifier or extractor for the page of a call."""
        job, is_own_page = self._job, isinstance(params.get("page"), dict)
        pages = self._own_preparer if is_own_page else job.preparer
        return {"block_builder": job.block_builder, "pages": pages, "style": job.style}

    async def _page_in(self, params: Mapping[str, Any]) -> Evidence | None:
        """Return the page of a call: one of the service, or one that the task file created."""
        page = params.get("page")
        if page is None:
            return None
        if isinstance(page, str):
            return await self._evidence_of(page)
        if not isinstance(page, dict):
            raise JudgeBug(f"a page must be a URL or an object, not {type(page).__name__}")
        return await asyncio.to_thread(_page_from_script, page)

    async def _evidence_of(self, url: str) -> Evidence:
        evidence = self._pages.get(url)
        if evidence is None:
            evidence = await self._job.evidence_for(url)
            self._pages.put(url, evidence, evidence.size)
        return evidence

    async def _question_fields(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that claims and extractions have in common. A call without an answer means the original."""
        answer: str | None = from_json_value(params.get("answer"), str | None)
        return {
            "task": _text(params, "task"),
            "answer": self._job.answer.text if answer is None else answer,
            "evidence": await self._page_in(params),
            "use_screenshot": bool(params.get("shots")),
        }


def _request_in(params: Mapping[str, Any]) -> LLMRequest:
    """Return the model request of a task file.

    Raises:
        JudgeBug: a field has the wrong type.
    """
    is_verdict = params.get("purpose") == "verify"
    return LLMRequest(
        model=_text(params, "model"),
        messages=tuple(from_json_value(params.get("messages"), list[dict[str, Any]])),
        schema=BinaryEvalResult if is_verdict else None if params.get("schema") is None else _schema(params["schema"]),
        purpose="verify" if is_verdict else "free",
        vote=from_json_value(params.get("vote"), int),
        params=from_json_value(params.get("params"), dict[str, Any]),
    )


def _reply_value(reply: LLMReply) -> dict[str, Any]:
    """Return a reply as JSON values. The task file's process parses the text into its own class."""
    return {
        "text": reply.text,
        "model": reply.model,
        "usage": to_json_value(reply.usage, Usage),
        "cached": reply.cached,
    }


def _repairing(llm: LLMClient, params: Mapping[str, Any]) -> LLMClient:
    """Return a client that tells the model if its previous reply did not match the task file's class."""
    if params.get("unusable") is None:
        return llm
    kind = from_json_value(params["unusable"], UnusableKind)
    return ObservedLLM(llm, (), prepare=lambda request: repair_request(request, kind))


def _page_from_script(page: Mapping[str, Any]) -> Evidence:
    """Return a page that the task file created. Digests are computed here, so it cannot pass for another page."""
    evidence = page_from_json(page, Evidence)
    bodies = (evidence.text.encode("utf-8", errors="replace"), *evidence.screenshots)
    return replace(evidence, digests=tuple(hashlib.sha256(body).hexdigest() for body in bodies))


def _schema(value: Any) -> ReplyType:
    """Return the schema of a call. Only a task file in this process can pass a class."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value
    schema: ReplySchema = from_json_value(value, ReplySchema)
    json_schema_of(schema)  # raises now if it is invalid
    return schema


def _text(params: Mapping[str, Any], name: str) -> str:
    text: str = from_json_value(params.get(name), str)
    return text
