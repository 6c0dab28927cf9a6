"""What the service does for a judge file's process: it judges, reads, asks and looks at pages, as it always does.

Prompts are written here, votes counted here, pages and pictures stay here: what goes over are claims and verdicts. The
process names a page by its URL; only what a file has put together itself comes over as a whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import structlog

from cache.capture import Capture
from cache.evidence import Evidence
from cache.lru import Recent
from judges.errors import JudgeBug, UnusableKind
from judges.extractor import ValueReader
from judges.isolation.conversation import Answering
from judges.isolation.stand_in import stand_in
from judges.isolation.values import as_text, evidence_from, evidence_value, plain, typed
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.remote import repaired
from judges.prompting.verdict_reply import BinaryEvalResult
from judges.verifier import ClaimJudge
from rubrics.verdict import Claim, Usage, Verdict

KEPT_BYTES: Final = 16 * 1024 * 1024
REAL: Final = "real"
SCOUT: Final = "scout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one run of a file asks with. ``judge`` and ``reader`` make what asks a model; ``apart`` is for pages that
    the file has put together, which must not stand in for others of the same address.
    """

    llm: LLMClient
    judge: Callable[[str, bool], ClaimJudge]
    reader: Callable[[LLMClient, str, bool], ValueReader]
    evidence_for: Callable[[str], Awaitable[Evidence]]


class Bodies(Protocol):
    """Stored bodies by their hash."""

    async def get(self, sha256: str) -> bytes: ...


class Desk:
    """Serves one process. ``lanes`` by name: the run that counts and, with look-ahead, the scouting one."""

    def __init__(self, lanes: Mapping[str, Lane], *, answer: str, bodies: Bodies) -> None:
        self._lanes = lanes
        self._answer = answer
        self._bodies = bodies
        # The newest page stays however large it is: every claim on it would load it again.
        self._kept: Recent[tuple[str, str], Evidence] = Recent(KEPT_BYTES, keeps_newest=True)

    def answers(self) -> dict[str, Answering]:
        """By the names they are called by."""
        return {
            "judge": self._judge,
            "extract": self._extract,
            "ask": self._ask,
            "look": self._look,
            "page": self._page,
            "body": self._body,
        }

    async def _judge(self, what: Mapping[str, Any]) -> Any:
        lane, trials = self._lane(what), typed(what.get("trials"), int)
        page = await self._evidence(what)
        if trials < 1 or trials % 2 == 0:
            raise JudgeBug(f"the number of votes must be odd and above zero, not {trials}")
        # What is logged meanwhile tells which leaf it is about.
        with structlog.contextvars.bound_contextvars(leaf=str(what.get("leaf") or "")):
            judge = lane.judge(_text(what, "model"), "page" in what and isinstance(what["page"], dict))
            verdict = await (judge.judge_kept if what.get("kept") else judge.judge)(
                typed(what.get("claim"), Claim),
                task=_text(what, "task"),
                answer=self._answer_in(what),
                evidence=page,
                trials=trials,
                use_screenshot=bool(what.get("shots")),
            )
        return None if verdict is None else plain(verdict, Verdict)

    async def _extract(self, what: Mapping[str, Any]) -> Any:
        lane = self._lane(what)
        reading = await lane.reader(
            _asking_again(lane.llm, what), _text(what, "model"), isinstance(what.get("page"), dict)
        ).ask(
            _schema(what.get("schema")),
            _text(what, "prompt"),
            task=_text(what, "task"),
            answer=self._answer_in(what),
            evidence=await self._evidence(what),
            instruction=typed(what.get("instruction"), str | None),
            use_screenshot=bool(what.get("shots")),
        )
        return {**reply_value(reading.reply), "prompt": reading.prompt, "evidence": list(reading.evidence)}

    async def _ask(self, what: Mapping[str, Any]) -> Any:
        lane = self._lane(what)
        return reply_value(await _asking_again(lane.llm, what).complete(request_of(what)))

    async def _look(self, what: Mapping[str, Any]) -> Any:
        evidence = await self._of(_text(what, "run"), _text(what, "url"))
        return {"capture": plain(evidence.capture, Capture), "digests": list(evidence.digests)}

    async def _page(self, what: Mapping[str, Any]) -> Any:
        evidence = await self._of(_text(what, "run"), _text(what, "url"))
        return await asyncio.to_thread(evidence_value, evidence)

    async def _body(self, what: Mapping[str, Any]) -> Any:
        return await asyncio.to_thread(as_text, await self._bodies.get(_text(what, "sha256")))

    async def _evidence(self, what: Mapping[str, Any]) -> Evidence | None:
        page = what.get("page")
        if page is None:
            return None
        if isinstance(page, str):
            return await self._of(_text(what, "run"), page)
        if not isinstance(page, dict):
            raise JudgeBug(f"a page is named by its URL, not by {type(page).__name__}")
        return await asyncio.to_thread(_handed_over, page)

    async def _of(self, run: str, url: str) -> Evidence:
        """The evidence of a URL as one run sees it."""
        kept = self._kept.get((run, url))
        if kept is None:
            kept = await self._lane({"run": run}).evidence_for(url)
            self._kept.put((run, url), kept, kept.size)
        return kept

    def _lane(self, what: Mapping[str, Any]) -> Lane:
        lane = self._lanes.get(str(what.get("run")))
        if lane is None:
            raise JudgeBug(f"there is no run {what.get('run')!r}")
        return lane

    def _answer_in(self, what: Mapping[str, Any]) -> str:
        """The answer's own text, which need not be sent back for every claim, or what the file has made of it."""
        given: str | None = typed(what.get("answer"), str | None)
        return self._answer if given is None else given


def request_of(what: Mapping[str, Any]) -> LLMRequest:
    """A question of the file's own.

    Raises:
        JudgeBug: it is none.
    """
    is_verdict = what.get("purpose") == "verify"
    return LLMRequest(
        model=_text(what, "model"),
        messages=tuple(typed(what.get("messages"), list[dict[str, Any]])),
        schema=BinaryEvalResult if is_verdict else _schema_or_none(what.get("schema")),
        purpose="verify" if is_verdict else "free",
        vote=typed(what.get("vote"), int),
        params=typed(what.get("params"), dict[str, Any]),
    )


def reply_value(reply: LLMReply) -> dict[str, Any]:
    """A reply as it goes over: its text, which the file's process reads into its own class."""
    text = reply.text
    if not text and reply.parsed is not None:
        text = reply.parsed.model_dump_json(by_alias=True, exclude_unset=True)
    return {"text": text, "model": reply.model, "usage": plain(reply.usage, Usage), "cached": reply.cached}


def _asking_again(llm: LLMClient, what: Mapping[str, Any]) -> LLMClient:
    kind = what.get("unusable")
    return llm if kind is None else _AskingAgain(llm, typed(kind, UnusableKind))


class _AskingAgain:
    """Adds to each request that the reply to it could not be used: only the file's own class could tell."""

    def __init__(self, llm: LLMClient, kind: UnusableKind) -> None:
        self._llm = llm
        self._kind = kind

    async def complete(self, request: LLMRequest) -> LLMReply:
        return await self._llm.complete(repaired(request, self._kind))

    async def aclose(self) -> None:
        """The client behind stays open."""


def _handed_over(page: Mapping[str, Any]) -> Evidence:
    """A page that the file put together. Its digests are worked out here: it must not pass for another one."""
    evidence = Evidence(**evidence_from(page))
    bodies = (evidence.text.encode("utf-8", errors="replace"), *evidence.screenshots)
    return replace(evidence, digests=tuple(hashlib.sha256(body).hexdigest() for body in bodies))


def _schema_or_none(value: Any) -> Any:
    return None if value is None else _schema(value)


def _schema(value: Any) -> Any:
    if not isinstance(value, dict):
        raise JudgeBug("an extraction needs a schema")
    return stand_in(_text(value, "name"), json.dumps(value.get("json"), sort_keys=False))


def _text(what: Mapping[str, Any], name: str) -> str:
    text: str = typed(what.get(name), str)
    return text
