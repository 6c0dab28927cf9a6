"""Routes for the summary of an agent and for the leaderboard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.access.keys import Caller
from app.agent_summary import AnswerOutcome, full_summary
from app.api.access import ReaderDep, ServiceDep
from app.api.examples import EXAMPLE_RESULT
from app.api.figures import AgentSummaryOut, LeaderboardRowOut
from app.api.models import ListOut
from app.api.paging import NAME_PATTERN, NamePath
from app.api.problems import not_found
from app.service import Service
from app.storage import results as rows
from app.storage.records import JudgedAnswer

router = APIRouter(prefix="/v1", tags=["results"])

RunQuery = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only this run")]
_SCORES = ("status", "score", "final_score", "model", "judge_model")
_NOT_IN_LEADERBOARD = ("per_run", "tasks", "without_result")


@router.get("/agents/{agent}/summary", response_model=AgentSummaryOut)
async def get_agent_summary(
    agent: NamePath, service: ServiceDep, caller: ReaderDep, run: RunQuery = None
) -> dict[str, Any]:
    """Return the averages of an agent over tasks and runs, with confidence intervals and counts of unjudged answers."""
    figures = await _load_summary(service, caller, agent, run=run)
    if not figures["num_answers"] and not figures["unfinished"]:
        raise not_found("agent with judged answers")
    return figures


@router.get("/leaderboard", response_model=ListOut[LeaderboardRowOut])
async def get_leaderboard(service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """List the averages of all agents, highest score first."""
    items = []
    async with service.database.begin() as connection:
        agents = await rows.judged_agents(connection, owner=caller.visible_owner)
    for agent in agents:
        agent_summary = await _load_summary(service, caller, agent, resampled=False)
        items.append(_leaderboard_row(agent_summary))
    items.sort(key=lambda item: (-(item["avg_score"] or 0.0), item["agent_name"]))
    return {"items": items, "next_cursor": None}


def _leaderboard_row(agent_summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in agent_summary.items() if name not in _NOT_IN_LEADERBOARD}


async def _load_summary(
    service: Service, caller: Caller, agent: str, *, run: str | None = None, resampled: bool = True
) -> dict[str, Any]:
    """Return the summary of one agent. It is computed in a thread, after the transaction has ended."""
    async with service.database.begin() as connection:
        judged = await rows.answers_of(connection, agent, owner=caller.visible_owner, run=run)
        unfinished = await rows.unfinished_answers(connection, agent, owner=caller.visible_owner, run=run)
    figures = await asyncio.to_thread(
        lambda: full_summary(
            agent,
            [parse_answer(answer, trees=True)[0] for answer in judged],
            unfinished=unfinished,
            resampled=resampled,
        )
    )
    return {"agent": agent, **figures}


def parse_answer(answer: JudgedAnswer, *, trees: bool) -> tuple[AnswerOutcome, dict[str, Any] | None]:
    """Parse the result of an answer. Return the outcome and the parsed result. Blocks for milliseconds per megabyte.

    Without ``trees`` the outcome has only the scores, because the trees of many agents would use too much memory.
    """
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


def examples() -> Mapping[str, Any]:
    """Return the examples by operation."""
    outcome = AnswerOutcome(task_id="yu_lineage", answer_name="answer_1.md", words=212, result=EXAMPLE_RESULT)
    figures = {"agent": "my-agent", **full_summary("my-agent", [outcome])}
    return {
        "GET /v1/agents/{agent}/summary": figures,
        "GET /v1/leaderboard": {"items": [_leaderboard_row(figures)], "next_cursor": None},
    }
