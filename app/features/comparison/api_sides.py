"""Query parameters and loading of the sides of a comparison: an agent, a run or a single result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query

from app.access.keys import Caller
from app.agent_summary import AnswerOutcome
from app.api.paging import NAME
from app.api.problems import not_found
from app.features.comparison.flips import ComparableResult
from app.features.comparison.flips import comparable_result as leaves_of
from app.features.comparison.paired_comparison import ComparisonSide
from app.service import Service
from app.storage import results as rows
from app.storage.records import JudgedAnswer

BLOCK_BUILDER = "@"
"""Separates agent and run. Neither name can contain it."""
_RESULT = "res_"
_SCORES = ("status", "score", "final_score")
_NAME = NAME.removeprefix("^").removesuffix("$")
SIDE = f"^{_NAME}({BLOCK_BUILDER}{_NAME})?$"
SideQuery = Annotated[str, Query(pattern=SIDE, description="agent, agent@run or result id")]
RunQuery = Annotated[str | None, Query(pattern=NAME, description="Only this run")]


def outcomes(judged: Sequence[JudgedAnswer], *, trees: bool = True) -> list[AnswerOutcome]:
    """Parse the results of answers. Blocks for some milliseconds per megabyte: call it in a thread.

    Without ``trees`` only the scores of a result are returned, because the trees of many agents would use too much
    memory.
    """
    return [_read(answer, trees=trees)[0] for answer in judged]


def _read(answer: JudgedAnswer, *, trees: bool) -> tuple[AnswerOutcome, dict[str, Any] | None]:
    """Return the outcome and the parsed result with its tree."""
    result: dict[str, Any] | None = None if answer.body is None else json.loads(answer.body)
    stored = result if trees or result is None else {name: result[name] for name in _SCORES if name in result}
    outcome = AnswerOutcome(
        task_id=answer.task_id,
        answer_name=answer.answer_name,
        words=answer.words,
        result=stored,
        error_code=answer.error_code,
    )
    return outcome, result


def _side(name: str, found: Sequence[JudgedAnswer], *, trees: bool, leaves: bool) -> ComparisonSide:
    """Build a side. Results are parsed one at a time to bound the use of memory."""
    outcomes: list[AnswerOutcome] = []
    judged: list[ComparableResult] = []
    for answer in found:
        outcome, result = _read(answer, trees=trees)
        outcomes.append(outcome)
        if leaves and result is not None:
            judged.append(leaves_of(result))
    return ComparisonSide(name=name, outcomes=outcomes, judged=judged)


async def load_side(
    service: Service, caller: Caller, name: str, *, trees: bool = False, leaves: bool = False
) -> ComparisonSide:
    """Return the judged answers for a name, optionally with result ``trees`` or with ``leaves`` for a comparison.

    Raises:
        Problem: there is no matching judged answer that the caller may read.
    """
    single, judged = None, []
    async with service.database.begin() as connection:
        if name.startswith(_RESULT):
            single = await rows.answer_of_result(connection, name, owner=caller.visible_owner)
        if single is None:
            agent, _, run = name.partition(BLOCK_BUILDER)
            judged = await rows.answers_of(connection, agent, owner=caller.visible_owner, run=run or None)
    found = judged if single is None else [single]
    if not found:
        raise not_found(f"agent, run or result with judged answers: {name!r}")
    return await asyncio.to_thread(_side, name, found, trees=trees, leaves=leaves)
