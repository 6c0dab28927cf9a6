"""What a judge file works with in a process of its own: the same objects, whose work is done by the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from pydantic import BaseModel

from cache.capture import Capture
from cache.evidence import Evidence
from judges.errors import ExtractionFailed, LLMOutputUnusable, UnusableKind
from judges.extractor import Extraction, Reading, S, ValueReader
from judges.isolation.rpc_client import Door
from judges.isolation.values import evidence_from, evidence_value, plain, typed
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.replies import read_reply
from judges.llm.wire import Finish, RawReply
from judges.prompting.rendering import Style
from judges.verifier import DEFAULT_TRIALS, ClaimJudge
from rubrics.verdict import Claim, Usage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance(Evidence):
    """A page that was looked at and stayed with the service: its text and pictures are not here.

    ``named`` is the URL it was asked for by; ``bring`` brings the whole page.
    """

    named: str
    bring: Callable[[str], Awaitable[Evidence]]

    async def whole(self) -> Evidence:
        return await self.bring(self.named)


class RemotePages:
    """The pages of one run: whole by ``evidence_for``, or by ``glance`` as much as is needed to judge by them."""

    def __init__(self, door: Door, run: str) -> None:
        self._door = door
        self._run = run

    async def glance(self, url: str) -> Evidence:
        """Raises as ``evidence_for``."""
        seen = await self._door.call("look", run=self._run, url=url)
        capture, digests = typed(seen["capture"], Capture), tuple(seen["digests"])
        return Glance(capture=capture, text="", digests=digests, named=url, bring=self.evidence_for)

    async def evidence_for(self, url: str) -> Evidence:
        """The page with its text and pictures.

        Raises:
            CacheError: there is none, or we cannot find out.
        """
        return Evidence(**evidence_from(await self._door.call("page", run=self._run, url=url)))


class RemoteClaimJudge(ClaimJudge):
    """Has claims judged. ``answer`` is the text the service has already."""

    def __init__(self, door: Door, run: str, model: str, *, answer: str) -> None:
        self._door = door
        self._run = run
        self.model = model
        self._answer = answer

    async def judge(
        self,
        claim: Claim,
        *,
        task: str,
        answer: str,
        evidence: Evidence | None = None,
        trials: int = DEFAULT_TRIALS,
        use_screenshot: bool = True,
    ) -> Verdict:
        said = await self._said(claim, task, answer, evidence, trials, shots=use_screenshot, kept=False)
        verdict: Verdict = typed(said, Verdict)
        return verdict

    async def judge_kept(
        self,
        claim: Claim,
        *,
        task: str,
        answer: str,
        evidence: Evidence | None = None,
        trials: int = DEFAULT_TRIALS,
        use_screenshot: bool = True,
    ) -> Verdict | None:
        said = await self._said(claim, task, answer, evidence, trials, shots=use_screenshot, kept=True)
        verdict: Verdict | None = typed(said, Verdict | None)
        return verdict

    async def _said(
        self,
        claim: Claim,
        task: str,
        answer: str,
        evidence: Evidence | None,
        trials: int,
        *,
        shots: bool,
        kept: bool,
    ) -> Any:
        return await self._door.call(
            "judge",
            run=self._run,
            model=self.model,
            claim=plain(claim, Claim),
            task=task,
            answer=None if answer == self._answer else answer,
            page=_named(evidence),
            trials=trials,
            shots=shots,
            kept=kept,
            leaf=structlog.contextvars.get_contextvars().get("leaf"),
        )


class RemoteReader(ValueReader):
    """Has values extracted; what comes is read into the file's own classes here."""

    def __init__(self, door: Door, run: str, model: str, *, answer: str, style: Style) -> None:
        self._door = door
        self._run = run
        self.model = model
        self._answer = answer
        self.style = style

    async def ask(
        self,
        schema: type[BaseModel],
        prompt: str,
        *,
        task: str,
        answer: str,
        evidence: Evidence | None,
        instruction: str | None,
        use_screenshot: bool,
    ) -> Reading:
        what: dict[str, Any] = {
            "run": self._run,
            "model": self.model,
            "schema": described(schema),
            "prompt": prompt,
            "task": task,
            "answer": None if answer == self._answer else answer,
            "page": _named(evidence),
            "instruction": instruction,
            "shots": use_screenshot,
        }
        try:
            said, reply = await _read_into(schema, self._door, "extract", what, strict=False)
        except LLMOutputUnusable as error:
            raise ExtractionFailed(
                f"extraction failed: {error}", cause_reason=error.reason, usage=error.usage
            ) from error
        return Reading(reply=reply, prompt=said["prompt"], evidence=tuple(said["evidence"]))

    async def extract_in_full(
        self, schema: type[S], prompt: str, *, evidence: Evidence | None = None, **question: Any
    ) -> Extraction[S]:
        if isinstance(evidence, Glance) and self.style is Style.NATIVE:
            evidence = replace_text(evidence, await evidence.whole())  # what was invented is told from its text
        return await super().extract_in_full(schema, prompt, evidence=evidence, **question)


class RemoteModel:
    """The service's model as an ``LLMClient``, by ``call``: one run's own, or a provider's that a file asks for."""

    def __init__(self, door: Door, call: str, **which: Any) -> None:
        self._door = door
        self._call = call
        self._which = which

    async def complete(self, request: LLMRequest) -> LLMReply:
        """As ``LLMClient.complete``."""
        what = {
            **self._which,
            "model": request.model,
            "messages": [dict(message) for message in request.messages],
            "schema": None if request.schema is None else described(request.schema),
            "purpose": request.purpose,
            "vote": request.vote,
            "params": dict(request.params),
        }
        _, reply = await _read_into(request.schema, self._door, self._call, what, strict=request.purpose == "verify")
        return reply

    async def aclose(self) -> None:
        """The service's own client stays open."""


def described(schema: type[BaseModel]) -> dict[str, Any]:
    """A class as the service is told of it."""
    return {"name": schema.__name__, "json": schema.model_json_schema()}


def replace_text(glance: Glance, whole: Evidence) -> Glance:
    """The glance, with what can be read on the page."""
    return replace(glance, capture=whole.capture, text=whole.text, links=whole.links)


def _named(evidence: Evidence | None) -> Any:
    if evidence is None:
        return None
    return evidence.named if isinstance(evidence, Glance) else evidence_value(evidence)


async def _read_into(
    schema: type[BaseModel] | None, door: Door, call: str, what: Mapping[str, Any], *, strict: bool
) -> tuple[Mapping[str, Any], LLMReply]:
    """What was said and, read into ``schema``, the reply in it; asked once more where it does not fit.

    Raises:
        JudgeError: the service's.
        LLMOutputUnusable: neither reply fits.
    """
    before, unusable = Usage(), None
    while True:
        asked = what if unusable is None else {**what, "unusable": unusable.value}
        said = await door.call(call, **asked)
        usage = before + typed(said["usage"], Usage)
        text, model = str(said["text"]), str(said["model"])
        try:
            parsed = read_reply(RawReply(text=text, finish=Finish.STOP, model=model), schema, strict=strict)
        except LLMOutputUnusable as error:
            error.usage = usage
            if unusable is not None or error.kind is UnusableKind.EMPTY:
                raise
            before, unusable = usage, error.kind
            continue
        return said, LLMReply(text=text, parsed=parsed, model=model, usage=usage, cached=bool(said["cached"]))
