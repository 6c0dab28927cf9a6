"""Route that verifies answers and returns rewards for reinforcement learning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from answers.citations import CACHED_CHARS
from answers.errors import InvalidSubmission
from answers.submission import text_problems
from app.access.keys import Caller
from app.api.access import ServiceDep, SubmitterDep
from app.api.models import BudgetUsd, ScoreOut
from app.api.problems import Problem
from app.api.request_fields import AnswerText, Model, Name, StrictJsonRoute
from app.api.submissions import usable_judge
from app.async_tools import first_exception
from app.features.rewards.reward import MaskReason, ScoreKind
from app.features.rewards.rubrics import InvalidRubric, RubricCompiler
from app.features.rewards.verification import RewardVerifier, Verification
from app.service import Service
from judges.cpu_bound import run_cpu_bound
from judges.llm.providers import parse_judge
from judges.registry import Judge

MAX_ITEMS = 1000
MAX_MESSAGES = 1000
_DEFAULT_DEADLINE_S = 120.0
_MAX_DEADLINE_S = 3600.0


_FORMS: list[Any] = [
    {
        "required": [rubric, answer],
        "properties": {
            rubric: {"type": "string" if rubric == "task_id" else "object"},
            answer: {"type": "string" if answer == "answer" else "array"},
            "rubric" if rubric == "task_id" else "task_id": {"type": "null"},
            "messages" if answer == "answer" else "answer": {"type": "null"},
        },
    }
    for rubric in ("task_id", "rubric")
    for answer in ("answer", "messages")
]
"""JSON Schemas of an item: one field that names the rubric, and one with the answer."""


class MessageIn(BaseModel):
    """Message of a conversation. Other fields than these, such as tool calls, are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: Annotated[str, Field(min_length=1, max_length=100)]
    content: str | list[dict[str, Any]] | None = Field(
        None, description='Text, or a list of parts, of which those with `"type": "text"` or "output_text" are read'
    )


class VerifyItemIn(BaseModel):
    """Answer, and the task or the rubric to verify it with."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"anyOf": _FORMS})

    task_id: Name | None = None
    rubric: dict[str, Any] | None = Field(None, description="Task file as JSON (docs/add-a-task.md)")
    answer: AnswerText | None = None
    messages: list[MessageIn] | None = Field(
        None,
        min_length=1,
        max_length=MAX_MESSAGES,
        description="Conversation: its last assistant message is the answer",
    )
    model: Model | None = None
    score: ScoreKind = Field(ScoreKind.COMPATIBLE, strict=False, description="Score that becomes the reward")
    max_unreadable_share: float = Field(
        0.25,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Maximum share of the pages without usable content. Above it, the reward is masked",
    )
    share_claims: bool = Field(
        True,
        description="Judge claims on a page without the answer, so that equal claims of several answers share verdicts",
    )
    budget_usd: BudgetUsd | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> VerifyItemIn:
        self.check_complete()
        return self

    def check_complete(self) -> None:
        """Raise ``ValueError`` unless there is one answer and one rubric."""
        if (self.task_id is None) == (self.rubric is None):
            raise ValueError("send either task_id or rubric")
        if (self.answer is None) == (self.messages is None):
            raise ValueError("send either answer or messages")


class VerifyIn(VerifyItemIn):
    """One answer to verify, or ``items`` with up to 1,000 of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "task_id": "karrow_visit",
                "answer": "The ferry leaves at 8:40 [timetable](https://example.org/page).",
            },
            "anyOf": [{"required": ["items"], "properties": {"items": {"type": "array"}}}, *_FORMS],
        },
    )

    items: list[VerifyItemIn] | None = Field(None, min_length=1, max_length=MAX_ITEMS)
    deadline_s: float = Field(
        _DEFAULT_DEADLINE_S,
        gt=0,
        le=_MAX_DEADLINE_S,
        allow_inf_nan=False,
        description="Seconds until a reward that is not known is masked, from the start of the request",
    )

    def check_complete(self) -> None:
        if self.items is None:
            super().check_complete()
        elif self.model_fields_set - {"items", "deadline_s"}:
            raise ValueError("with items, send no other field than deadline_s")


class BoundsOut(BaseModel):
    """Bounds of a score. They are equal if nothing is unknown."""

    low: float
    high: float


class ComponentOut(BaseModel):
    """Leaf of the rubric. Its scores are null if it was not judged, or waits for such a leaf."""

    id: str
    description: str
    critical: bool
    weight: float
    outcome: str
    reason: str | None
    score: float | None
    score_strict: float | None


class PagesOut(BaseModel):
    """Number of pages that are cited or were read, and of those without usable content."""

    total: int
    unreadable: int


class CostOut(BaseModel):
    """Model calls, tokens and US dollars of the verification. Cached calls cost nothing."""

    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class TimingOut(BaseModel):
    """Seconds. ``model_s`` is the time in which at least one model request was running."""

    total_s: float
    queued_s: float
    capture_s: float
    model_s: float


class RewardOut(BaseModel):
    """Reward in [0, 1]; null with ``mask: true`` if the verdict is not reliable."""

    reward: float | None
    mask: bool
    mask_reason: MaskReason | None
    mask_detail: str | None
    score: ScoreKind
    bounds: BoundsOut
    scores: dict[ScoreKind, ScoreOut]
    components: list[ComponentOut]
    pages: PagesOut | None = Field(description="Null if the answer was not judged")
    cost: CostOut
    timing: TimingOut
    task_id: str
    judge_sha256: str | None
    answer_sha256: str
    model: str


class RewardsOut(BaseModel):
    """Rewards of a batch, in the order of its items."""

    items: list[RewardOut]


router = APIRouter(prefix="/v1", tags=["rewards"], route_class=StrictJsonRoute)


def _verifier_of(request: Request) -> RewardVerifier:
    """Return the verifier of this process, which ``app.server.application`` creates."""
    verifier: RewardVerifier = request.app.state.rewards
    return verifier


VerifierDep = Annotated[RewardVerifier, Depends(_verifier_of)]


@router.post("/verify", response_model=RewardOut | RewardsOut)
async def verify_answer(body: VerifyIn, service: ServiceDep, verifier: VerifierDep, caller: SubmitterDep) -> Response:
    """Verify one answer, or a batch, and return the reward. A reward that is not reliable is masked, never 0.

    Answers in ``deadline_s`` seconds. Equal requests get equal responses for an hour, unless the reward is masked.
    """
    items = [body] if body.items is None else body.items
    verifications = await _verifications(service, verifier, caller, body, items)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(verifier.verify(each)) for each in verifications]
    except BaseExceptionGroup as errors:
        raise first_exception(errors) from None
    found = [task.result() for task in tasks]
    content = found[0] if body.items is None else b'{"items": [' + b", ".join(found) + b"]}"
    return Response(content, media_type="application/json")


async def _verifications(
    service: Service, verifier: RewardVerifier, caller: Caller, body: VerifyIn, items: Sequence[VerifyItemIn]
) -> list[Verification]:
    """Return what to verify.

    Raises:
        InvalidSubmission: An answer is invalid.
        Problem: A task does not exist or a rubric is invalid.
    """
    prefixes = [""] if body.items is None else [f"items.{number}." for number in range(len(items))]
    await service.runtime.reload_judges({item.task_id for item in items if item.task_id is not None})
    judges = list[Judge]()
    try:
        async with asyncio.timeout(body.deadline_s):
            for item, prefix in zip(items, prefixes, strict=True):
                await verifier.turns.wait()
                judges.append(await _judge(service, verifier.rubrics, item, prefix))
    except TimeoutError:
        detail = "The rubrics were not compiled within deadline_s. Those that were are kept: try again in 1 s"
        raise Problem(503, "BUSY", detail, headers={"Retry-After": "1"}) from None

    def texts() -> list[str]:
        return [_text(item, prefix) for item, prefix in zip(items, prefixes, strict=True)]

    limit_chars = CACHED_CHARS if all(item.messages is None for item in items) else 0
    found = await run_cpu_bound(texts, *(item.answer or "" for item in items), limit_chars=limit_chars)
    pairs = zip(found, judges, strict=True)
    return [
        Verification(
            judge=judge,
            text=text,
            model=str(parse_judge(item.model or service.settings.model)),
            owner=caller.owner,
            score=item.score,
            max_unreadable_share=item.max_unreadable_share,
            alone=item.share_claims,
            budget_usd=item.budget_usd,
            deadline_s=body.deadline_s,
        )
        for item, (text, judge) in zip(items, pairs, strict=True)
    ]


def _text(item: VerifyItemIn, prefix: str) -> str:
    """Return the answer of an item, or the text of its last assistant message.

    Raises:
        InvalidSubmission: It is empty, too long, or cites too many URLs.
    """
    if item.messages is None:
        text, path = item.answer or "", f"{prefix}answer"
    else:
        spoken = [message for message in item.messages if message.role == "assistant"]
        text, path = _content(spoken[-1]) if spoken else "", f"{prefix}messages"
    problems = list(text_problems(text, path))
    if problems:
        raise InvalidSubmission(problems)
    return text


def _content(message: MessageIn) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    texts = [part.get("text") for part in message.content if part.get("type") in ("text", "output_text")]
    return "".join(text for text in texts if isinstance(text, str))


async def _judge(service: Service, compiler: RubricCompiler, item: VerifyItemIn, prefix: str) -> Judge:
    """Return the judge of the item's task or rubric. Raise ``Problem`` if it cannot be used."""
    if item.rubric is not None:
        try:
            return await compiler.judge(item.rubric)
        except InvalidRubric as error:
            errors = [(f"{prefix}rubric.{path}".rstrip("."), message) for path, message in error.errors]
            raise Problem(422, "INVALID", str(error), errors=errors) from error
    return usable_judge(service, item.task_id or "", f"{prefix}task_id")
