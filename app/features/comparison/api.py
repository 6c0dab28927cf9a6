"""API of the feature: comparison of sides, and response examples.

A side of a comparison is an agent, a run or a single result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep
from app.api.examples import EXAMPLE_ID, EXAMPLE_RESULT
from app.api.models import ListOut, OpenModel, ScoreOut
from app.api.paging import NAME_PATTERN, PositionsPageDep
from app.api.problems import Problem
from app.api.summaries import MixQuery, parse_answer, refuse_to_mix, total_judges
from app.features.comparison.paired_comparison import ComparisonSide, add_flips, comparison_json
from app.service import Service
from app.storage import results as rows
from app.storage.records import JudgedAnswer
from judges.agent_figures import AnswerOutcome
from judges.analysis.flips import Cause, ComparableResult, Flip, FlipCause, comparable_result, flips
from judges.analysis.statistics.intervals import Interval


class SideOut(BaseModel):
    """One side of a comparison: an agent, a run or a result."""

    name: str
    tasks: int
    answers: int
    not_judged: int
    judges: dict[str, int] = Field(description="Number of answers by judge model")


class SignFlipOut(BaseModel):
    """Sign-flip test of the task differences."""

    p: float
    p_holm: float = Field(description="Corrected for the number of comparisons")
    exact: bool
    patterns: int
    tasks_that_differ: int
    smallest_p: float
    method: str


class FigureComparisonOut(BaseModel):
    """One figure on both sides. The difference is b - a."""

    a: ScoreOut | None
    b: ScoreOut | None
    tasks: int
    certain: int = Field(description="Tasks without answers that could change the difference")
    difference: float | None
    low: float | None
    high: float | None
    student_t: Interval | None
    bootstrap: Interval | None
    whatever_is_open: Interval | None
    sign_flip: SignFlipOut | None
    smallest_detectable_difference: float | None
    verdict: Literal["b_higher", "b_lower", "not_told_apart", "too_few_tasks", "nothing_to_compare"]
    warnings: list[str]


class TaskComparisonOut(BaseModel):
    """One task on both sides, with the leaves that flipped."""

    task_id: str
    a: ScoreOut
    b: ScoreOut
    difference: ScoreOut
    flipped: int
    flips: list[Flip]


class SideComparisonOut(OpenModel):
    """Comparison of one side with ``a``."""

    b: SideOut
    score: FigureComparisonOut
    success: FigureComparisonOut
    tasks: list[TaskComparisonOut]
    only_a: list[str]
    only_b: list[str]
    flipped: int
    flips_left_out: int


class ComparisonOut(OpenModel):
    """Comparison of each ``b`` with ``a`` over the tasks that both have."""

    level: float
    a: SideOut
    comparisons: list[SideComparisonOut]


router = APIRouter(prefix="/v1", tags=["results"])

SEPARATOR = "@"
"""Separates agent and run. Neither name can contain it."""
_RESULT = "res_"
_NAME = NAME_PATTERN.removeprefix("^").removesuffix("$")
SIDE = f"^{_NAME}({SEPARATOR}{_NAME})?$"
SideQuery = Annotated[str, Query(pattern=SIDE, description="agent, agent@run or result id")]


def _build_side(name: str, answers: Sequence[JudgedAnswer]) -> ComparisonSide:
    """Build a side. Results are parsed one at a time to bound the use of memory."""
    outcomes: list[AnswerOutcome] = []
    judged: list[ComparableResult] = []
    for answer in answers:
        outcome, result = parse_answer(answer, trees=False)
        outcomes.append(outcome)
        if result is not None:
            judged.append(comparable_result(result))
    return ComparisonSide(name=name, outcomes=outcomes, judged=judged)


async def _load_side(service: Service, caller: Caller, name: str) -> ComparisonSide:
    """Return the judged answers for a name.

    Raises:
        Problem: there is no matching judged answer that the caller may read.
    """
    single, agent_answers = None, []
    async with service.database.begin() as connection:
        if name.startswith(_RESULT):
            single = await rows.answer_of_result(connection, name, owner=caller.visible_owner)
        if single is None:
            agent, _, run = name.partition(SEPARATOR)
            agent_answers = await rows.answers_of(connection, agent, owner=caller.visible_owner, run=run or None)
    answers = agent_answers if single is None else [single]
    if not answers:
        raise Problem(404, "NOT_FOUND", f"{name!r} is no agent, run or result that has judged answers")
    return await asyncio.to_thread(_build_side, name, answers)


MAX_SIDES = 20
MAX_FLIPS = 1000
"""Maximum per response, divided evenly among the compared sides. ``/v1/compare/flips`` returns all flips."""
Others = Annotated[
    list[Annotated[str, Query(pattern=SIDE)]],
    Query(
        min_length=1, max_length=MAX_SIDES, description="Side to compare with a; repeat the parameter for more sides"
    ),
]


@router.get("/compare", response_model=ComparisonOut)
async def compare(
    a: SideQuery, b: Others, service: ServiceDep, caller: ReaderDep, mix_judges: MixQuery = False
) -> dict[str, Any]:
    """Compare each ``b`` with ``a`` task by task: differences, their significance, and which leaves flipped and why.

    Answers of different judges are refused (409 MIXED_JUDGES), unless `mix_judges`.
    """
    first = await _load_side(service, caller, a)
    others, flipped = [], list[list[Flip]]()
    for name in b:
        other = await _load_side(service, caller, name)
        flipped.append(await asyncio.to_thread(flips, first.judged, other.judged))
        others.append(replace(other, judged=()))  # the leaves of all sides together would use too much memory
    document = await asyncio.to_thread(comparison_json, first, others)
    sides = [document["a"], *(comparison["b"] for comparison in document["comparisons"])]
    judges = total_judges(side["judges"] for side in sides)
    if len(judges) > 1 and not mix_judges:
        named = [{"name": side["name"], "judges": side["judges"]} for side in sides]
        of_judge = {judge: {"sides": [side for side in named if judge in side["judges"]]} for judge in judges}
        raise refuse_to_mix(judges, of_judge)
    for comparison, side_flips in zip(document["comparisons"], flipped, strict=True):
        add_flips(comparison, side_flips, max_listed=MAX_FLIPS // len(b))
    return document


@router.get("/compare/flips")
async def list_flips(
    a: SideQuery, b: SideQuery, service: ServiceDep, caller: ReaderDep, paging: PositionsPageDep
) -> ListOut[Flip]:
    """List all leaves whose outcome differs between the two sides, with the causes. The cursor is an offset."""
    start = 0 if paging.cursor is None else int(paging.cursor)
    first = await _load_side(service, caller, a)
    second = await _load_side(service, caller, b)
    all_flips = await asyncio.to_thread(flips, first.judged, second.judged)
    end = start + paging.limit
    return ListOut(
        items=all_flips[start:end],
        next_cursor=str(end) if end < len(all_flips) else None,
    )


_EXAMPLE_FLIP = Flip(
    task_id="karrow_visit",
    answer_name="answer_1.md",
    leaf="ferry/leaves",
    description="On Saturday the ferry leaves Sund Quay at 8:40",
    before="passed",
    after="failed",
    causes=[FlipCause(cause=Cause.PAGE, detail="https://example.org/page: its text changed")],
    result_before=f"res_{EXAMPLE_ID}",
    result_after=f"res_{EXAMPLE_ID}",
)
_EXAMPLE_OUTCOME = AnswerOutcome(task_id="karrow_visit", answer_name="answer_1.md", words=212, result=EXAMPLE_RESULT)


def examples() -> Mapping[str, Any]:
    """Return the examples by operation. The example result has no tree, because a tree would be too long."""
    monday, tuesday = _example_side("my-agent@monday"), _example_side("my-agent@tuesday")
    comparison = comparison_json(monday, [tuesday])
    add_flips(comparison["comparisons"][0], [_EXAMPLE_FLIP], max_listed=1)
    return {
        "GET /v1/compare": comparison,
        "GET /v1/compare/flips": {"items": [asdict(_EXAMPLE_FLIP)], "next_cursor": None},
    }


def _example_side(name: str) -> ComparisonSide:
    return ComparisonSide(name=name, outcomes=[_EXAMPLE_OUTCOME])
