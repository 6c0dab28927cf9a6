"""Routes for the summary of an agent and for the leaderboard.

Scores of different judges are not mixed in one figure without the caller's consent.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from answers.submission import MAX_LABEL_CHARS
from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep
from app.api.examples import EXAMPLE_ID, EXAMPLE_RESULT, EXAMPLE_TIME
from app.api.models import ListOut, OpenModel, RecordModel, ScoreOut
from app.api.paging import NAME_PATTERN, NameFilter, NamePath
from app.api.problems import Problem, not_found
from app.service import Service
from app.storage import results as rows
from app.storage.records import JudgedAnswer
from judges.agent_figures import (
    AnswerOutcome,
    agent_summary,
    by_judge,
    full_summary,
    interval_over_tasks,
    judges_of,
    mean_over_tasks,
)
from judges.analysis.statistics.intervals import Interval

MixQuery = Annotated[bool, Query(description="Accept scores of different judges in one figure or comparison")]
JudgeQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_LABEL_CHARS,
        pattern="^[!-~]+$",
        description="Only answers of this judge, as named in `judges`. Answers without a result always count",
    ),
]
_DETAIL = (
    "The scores come from different judges: {judges}. Select one with judge, judge the answers again with "
    "one model (POST /v1/rescores), or accept it with mix_judges=true"
)


def total_judges(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the number of answers by judge over several figures, most first."""
    return dict(sum(map(Counter, counts), Counter[str]()).most_common())


def refuse_to_mix(
    judges: Mapping[str, int], figures: Mapping[str, Mapping[str, Any]], path: str | None = None
) -> Problem:
    """Return the refusal. ``figures`` has the figures of each judge, which ``path`` returns with ``judge=NAME``."""
    offered: Sequence[Mapping[str, Any]] = [
        {"judge": judge, "answers": answers, **figures.get(judge, {})}
        | ({} if path is None else {"url": f"{path}{'&' if '?' in path else '?'}judge={quote(judge, safe='')}"})
        for judge, answers in judges.items()
    ]
    listed = ", ".join(f"{judge} ({answers} answers)" for judge, answers in judges.items())
    return Problem(409, "MIXED_JUDGES", _DETAIL.format(judges=listed), fields={"judges": offered})


class UsageTotalsOut(BaseModel):
    """Model calls, tokens and cost."""

    calls: int
    cached_calls: int = Field(description="Requests that were answered by a stored or shared reply")
    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Cost; null if a price is unknown")


class NotJudgedOut(BaseModel):
    """Counts of what was not judged."""

    answers: int
    incomplete: int = Field(description="Answers with a result and leaves that were not judged")
    without_result: int
    leaves: int


class AverageBoundsOut(BaseModel):
    """Averages with bounds."""

    score: ScoreOut | None
    success: ScoreOut | None
    pass_at_k: ScoreOut | None = Field(description="Over the tasks that have an answer of every run")


class HeadlineFigureOut(ScoreOut):
    """A headline figure over tasks, with intervals."""

    tasks: int
    interval: Interval | None
    student_t: Interval | None
    bootstrap: Interval | None


class PassEstimateOut(ScoreOut):
    """Estimate of pass@k or pass^k for one k."""

    k: int
    tasks: int
    interval: Interval | None


class NotJudgedShareOut(BaseModel):
    """Number and share of answers that were not judged completely."""

    answers: int
    share: float


class StatisticsOut(OpenModel):
    """Headline figures with bounds and intervals."""

    level: float = Field(description="Confidence level of the intervals")
    tasks: int
    answers: int
    not_judged: NotJudgedShareOut
    score: HeadlineFigureOut
    success: HeadlineFigureOut
    pass_at_k: list[PassEstimateOut]
    pass_hat_k: list[PassEstimateOut]
    smallest_detectable_difference: float | None
    warnings: list[str]


class LeaderboardRowOut(OpenModel):
    """Averages of an agent. ``pass_at_<answers per task>`` is a further field."""

    agent: str
    agent_name: str = Field(description="Same as agent, as the public toolkit names it")
    num_tasks: int
    num_runs: int
    num_answers: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    not_judged: NotJudgedOut
    nothing_applies: int = Field(description="Answers without a score, because no leaf applies; no figure counts them")
    bounds: AverageBoundsOut
    usage: UsageTotalsOut
    seconds: float
    judges: dict[str, int] = Field(description="Number of answers by judge model")
    unfinished: int = Field(description="Jobs that are queued or running")
    statistics: StatisticsOut | None


class RunAveragesOut(BaseModel):
    """Averages of one run."""

    num_tasks: int
    avg_score: float
    success_rate: float
    avg_word_count: float


class TaskAnswerOut(BaseModel):
    """Score of one answer."""

    answer_name: str
    score: float
    success: bool
    word_count: int


class TaskAveragesOut(BaseModel):
    """Averages of one task."""

    answers: list[TaskAnswerOut]
    best_score: float
    avg_score: float
    passed: bool = Field(alias="pass")


class WithoutResultOut(BaseModel):
    """An answer whose job failed."""

    task_id: str
    answer_name: str
    error_code: str | None


class MissingAnswerOut(BaseModel):
    """Answer that a task lacks, although other tasks have one of the same name."""

    task_id: str
    answer_name: str


class AgentSummaryOut(LeaderboardRowOut):
    """Averages of an agent, by run and by task."""

    per_run: dict[str, RunAveragesOut]
    tasks: dict[str, TaskAveragesOut]
    without_result: list[WithoutResultOut]
    missing_answers: list[MissingAnswerOut]


router = APIRouter(prefix="/v1", tags=["results"])

RunQuery = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only this run")]
_SCORES = ("status", "score", "final_score", "model", "judge_model")
_NOT_IN_LEADERBOARD = ("per_run", "tasks", "without_result", "missing_answers")


@router.get("/agents/{agent}/summary", response_model=AgentSummaryOut)
async def get_agent_summary(
    agent: NamePath,
    service: ServiceDep,
    caller: ReaderDep,
    run: RunQuery = None,
    judge: JudgeQuery = None,
    mix_judges: MixQuery = False,
) -> dict[str, Any]:
    """Return the averages of an agent over tasks and answers, with confidence intervals and counts of unjudged answers.

    Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless `mix_judges`.
    """
    outcomes, unfinished = await _load_outcomes(service, caller, agent, run=run)
    if not outcomes and not unfinished:
        raise not_found("agent with judged answers")
    judges = judges_of(by_judge(outcomes, judge))
    if len(judges) > 1 and not mix_judges:
        figures = await asyncio.to_thread(_averages_by_judge, agent, outcomes, judges)
        query = "" if run is None else f"?run={run}"
        raise refuse_to_mix(judges, figures, f"/v1/agents/{agent}/summary{query}")
    return await _summary(agent, outcomes, judge, unfinished=unfinished)


@router.get("/leaderboard", response_model=ListOut[LeaderboardRowOut])
async def get_leaderboard(
    service: ServiceDep, caller: ReaderDep, judge: JudgeQuery = None, mix_judges: MixQuery = False
) -> dict[str, Any]:
    """List the averages of all agents, highest score first.

    Answers of different judges are refused (409 MIXED_JUDGES, with the averages of each judge), unless `mix_judges`.
    With `judge`, agents without an answer of this judge are left out.
    """
    items, refused = [], dict[str, dict[str, Any]]()
    async with service.database.begin() as connection:
        agents = await rows.judged_agents(connection, owner=caller.visible_owner)
    for agent in agents:
        outcomes, unfinished = await _load_outcomes(service, caller, agent)
        judges = judges_of(by_judge(outcomes, judge))
        if judge is not None and not judges:
            continue
        summary = await _summary(agent, outcomes, judge, unfinished=unfinished, resampled=False)
        items.append(_leaderboard_row(summary))
        if mix_judges or judge is not None:
            continue
        averages = {name: _averages(summary) for name in judges}
        if len(judges) > 1:
            averages = await asyncio.to_thread(_averages_by_judge, agent, outcomes, judges)
        for name, figures in averages.items():
            refused.setdefault(name, {"agents": []})["agents"].append({"agent": agent, **figures})
    if len(refused) > 1:
        raise refuse_to_mix(total_judges(item["judges"] for item in items), refused, "/v1/leaderboard")
    items.sort(key=lambda item: (-(item["avg_score"] or 0.0), item["agent_name"]))
    return {"items": items, "next_cursor": None}


class TaskScoreOut(RecordModel):
    """Scores of one run of an agent at a task by one judge, over the newest result of each answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "task_id": "karrow_visit",
                "agent": "my-agent",
                "run": "nightly",
                "score": {"value": None, "low": 0.5, "high": 0.75},
                "success": {"value": 0.0, "low": 0.0, "high": 0.0},
                "answers": 3,
                "incomplete": 1,
                "judge": "openai/gpt-6-luna",
                "result_id": f"res_{EXAMPLE_ID}",
                "last_judged_at": EXAMPLE_TIME,
            }
        }
    )

    task_id: str
    agent: str
    run: str | None
    score: ScoreOut
    success: ScoreOut = Field(description="Share of answers with score 1")
    answers: int
    incomplete: int = Field(description="Answers with leaves that were not judged")
    judge: str = Field(description="Model of the judge")
    result_id: str = Field(description="Newest result")
    last_judged_at: datetime


@router.get("/task-scores")
async def list_task_scores(
    service: ServiceDep, caller: ReaderDep, task_id: NameFilter = None, agent: NameFilter = None
) -> ListOut[TaskScoreOut]:
    """List the mean score of each run of each agent at each task by each judge, the best of each task first."""
    async with service.database.begin() as connection:
        found = await rows.task_scores(connection, owner=caller.visible_owner, task_id=task_id, agent=agent)
    items = [TaskScoreOut.of_record(one) for one in found]
    return ListOut(items=items, next_cursor=None)


class MeanScoreOut(BaseModel):
    """Means of one run of an agent by one judge over the tasks that all listed runs have; null without such a task."""

    agent: str
    run: str | None
    judge: str
    tasks: int = Field(description="Number of these tasks")
    score: ScoreOut | None
    interval: Interval | None = Field(description="95 % interval of the score; null without the extra `statistics`")
    success: ScoreOut | None


@router.get("/mean-scores")
async def list_mean_scores(
    service: ServiceDep,
    caller: ReaderDep,
    task_id: Annotated[list[str], Query(max_length=1000, description="Only these tasks. Repeatable")] = [],  # noqa: B006
    agent: NameFilter = None,
    judge: JudgeQuery = None,
) -> ListOut[MeanScoreOut]:
    """List the mean score of each run of each agent by each judge over the tasks that all of them have."""
    async with service.database.begin() as connection:
        found = await rows.task_scores(connection, owner=caller.visible_owner, task_id=None, agent=agent)
    chosen = [one for one in found if judge in (None, one.judge) and (not task_id or one.task_id in task_id)]
    return ListOut(items=await asyncio.to_thread(mean_scores, chosen), next_cursor=None)


def mean_scores(scores: Sequence[rows.TaskScore]) -> list[MeanScoreOut]:
    """Return the means over the tasks that all runs in ``scores`` have. Takes up to 25 ms for each run."""
    by_run: dict[tuple[str, str | None, str], dict[str, rows.TaskScore]] = {}
    for one in scores:
        by_run.setdefault((one.agent, one.run, one.judge), {})[one.task_id] = one
    shared = sorted({one.task_id for one in scores}.intersection(*by_run.values()))
    items = []
    for (agent, run, judge), cells in by_run.items():
        means: dict[str, object] = dict.fromkeys(("score", "interval", "success"))
        if shared:
            task_scores = [cells[task].score for task in shared]
            success = mean_over_tasks([cells[task].success for task in shared])
            interval = interval_over_tasks(task_scores)
            means = {"score": mean_over_tasks(task_scores), "interval": interval, "success": success}
        named = {"agent": agent, "run": run, "judge": judge, "tasks": len(shared)}
        items.append(MeanScoreOut.model_validate(named | means, from_attributes=True))
    return items


def _leaderboard_row(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in _NOT_IN_LEADERBOARD}


async def _load_outcomes(
    service: Service, caller: Caller, agent: str, *, run: str | None = None
) -> tuple[list[AnswerOutcome], int]:
    """Return the judged answers of an agent, parsed after the transaction has ended, and how many are unfinished."""
    async with service.database.begin() as connection:
        judged = await rows.answers_of(connection, agent, owner=caller.visible_owner, run=run, each_run=True)
        unfinished = await rows.unfinished_answers(connection, agent, owner=caller.visible_owner, run=run)
    has_runs = len({answer.run for answer in judged}) > 1
    outcomes = await asyncio.to_thread(
        lambda: [_name_run(parse_answer(answer, trees=True)[0], answer, has_runs=has_runs) for answer in judged]
    )
    return outcomes, unfinished


async def _summary(
    agent: str, outcomes: Sequence[AnswerOutcome], judge: str | None, *, unfinished: int, resampled: bool = True
) -> dict[str, Any]:
    """Return the summary of one agent over the answers of ``judge`` (None: of all), computed in a thread."""
    selected = by_judge(outcomes, judge)
    figures = await asyncio.to_thread(lambda: full_summary(agent, selected, unfinished=unfinished, resampled=resampled))
    return {"agent": agent, **figures}


_AVERAGES = ("avg_score", "success_rate", "bounds", "num_tasks", "num_answers")


def _averages_by_judge(
    agent: str, outcomes: Sequence[AnswerOutcome], judges: Iterable[str]
) -> dict[str, dict[str, Any]]:
    return {judge: _averages(agent_summary(agent, by_judge(outcomes, judge))) for judge in judges}


def _averages(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in _AVERAGES}


def _name_run(outcome: AnswerOutcome, answer: JudgedAnswer, *, has_runs: bool) -> AnswerOutcome:
    """Return the outcome with the run in the name of the answer, because answers of several runs have equal names."""
    if not has_runs or answer.run is None:
        return outcome
    return replace(outcome, answer_name=f"{answer.run}/{answer.answer_name}")


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
    outcome = AnswerOutcome(task_id="karrow_visit", answer_name="answer_1.md", words=212, result=EXAMPLE_RESULT)
    figures = {"agent": "my-agent", **full_summary("my-agent", [outcome])}
    return {
        "GET /v1/agents/{agent}/summary": figures,
        "GET /v1/leaderboard": {"items": [_leaderboard_row(figures)], "next_cursor": None},
    }
