"""Queries for results, which are immutable: their JSON, their origin and the URLs they cite.

The cited URLs are extracted from the JSON when a result is stored, so lists of URLs need not parse whole results. Call
every function inside a transaction.

``search`` finds agents, runs, results and captures by a part of their names.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Subquery, and_, case, func, insert, literal, or_, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import key_digest, shown_to
from app.storage.listings import ALL, ListFilter, below, equal
from app.storage.records import (
    Job,
    JobKind,
    JobStatus,
    JudgedAnswer,
    NewResult,
    ResultRecord,
    storable_text,
    stored_score,
)
from app.storage.tables import answers, captures, jobs, result_pages, result_sources, results
from cache.urls import canonical_key
from rubrics.scoring import FULL_SCORE, Score, bounded_score
from rubrics.tree_json import leaves_of

_COLUMNS = (results.c.id, results.c.job_id, results.c.body, results.c.created_at)
_OPEN_OUTCOMES = frozenset({"not_judged", "undecided"})


async def insert_result(connection: AsyncConnection, job: Job, result: NewResult, *, now: datetime) -> None:
    """Store the result of an attempt of ``job``. Call in the transaction that ends or pauses the job."""
    await connection.execute(
        insert(results).values(
            id=result.id,
            job_id=job.id,
            attempt=job.attempts,
            owner=job.owner,
            agent=job.agent,
            task_id=job.task_id,
            answer_name=job.answer_name,
            status=result.status,
            final_score=result.final_score,
            score_low=result.score_low,
            score_high=result.score_high,
            model=result.model,
            body=result.body,
            created_at=now,
            kind=job.kind,
        )
    )
    if result.page_ids:
        pages = [{"result_id": result.id, "capture_id": page} for page in sorted(set(result.page_ids))]
        await connection.execute(insert(result_pages), pages)
    if job.kind is JobKind.ANSWER:
        await _insert_sources(connection, result.id, result.body)


async def get_result(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> ResultRecord | None:
    """Return one result, or None. ``owner`` limits the query to one owner."""
    query = select(*_COLUMNS).where(results.c.id == result_id, *owned_by(owner))
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else ResultRecord(**row)


async def has_result(connection: AsyncConnection, result_id: str, *, owner: str | None) -> bool:
    """Return whether there is such a result, without reading its JSON. ``owner`` limits the query to one owner."""
    query = select(results.c.id).where(results.c.id == result_id, *owned_by(owner))
    return (await connection.execute(query)).first() is not None


async def earlier_result(connection: AsyncConnection, job: Job) -> str | None:
    """Return the body of the earlier result to compare a job's next result with, or None.

    Only results of the same owner, agent and task count. The newest result for the same answer text comes first, then
    the newest one for the same answer name.
    """
    same_text = jobs.c.answer_sha256 == job.answer_sha256
    query = (
        select(results.c.body)
        .join(jobs, jobs.c.id == results.c.job_id)
        .where(
            results.c.agent == job.agent,
            results.c.task_id == job.task_id,
            results.c.owner == job.owner,
            results.c.kind == JobKind.ANSWER,
            or_(same_text, results.c.answer_name == job.answer_name),
        )
        .order_by(same_text.desc(), results.c.id.desc())
        .limit(1)
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def list_results(
    connection: AsyncConnection,
    *,
    limit: int,
    chosen: ListFilter = ALL,
    before: str | None = None,
    status: str | None = None,
) -> list[ResultRecord]:
    """Return results of answers, newest first. ``before`` is the ID of the last one of the previous page."""
    query = select(*_COLUMNS).where(*_listed(chosen, before, status)).order_by(results.c.id.desc()).limit(limit)
    return [ResultRecord(**row) for row in (await connection.execute(query)).mappings()]


async def answers_of(
    connection: AsyncConnection,
    agent: str,
    *,
    owner: str | None = None,
    run: str | None = None,
    each_run: bool = False,
) -> list[JudgedAnswer]:
    """Return the outcome of the newest finished job of each answer of an agent, by task and answer name.

    ``run`` limits the query to jobs of that run. ``each_run``: answers of different runs are different answers.
    """
    place: tuple[ColumnElement[Any], ...] = (jobs.c.task_id, jobs.c.answer_name)
    place += (jobs.c.run,) if each_run else ()
    query = (
        select(jobs.c.task_id, jobs.c.answer_name, jobs.c.run, jobs.c.error, answers.c.words, results.c.body)
        .join(answers, answers.c.sha256 == jobs.c.answer_sha256)
        .outerjoin(results, results.c.id == jobs.c.result_id)
        .where(jobs.c.agent == agent, *equal((jobs.c.run, run)), *_finished(owner))
        .order_by(*place, jobs.c.id.desc())
        .ext(distinct_on(*place))
    )
    return [
        JudgedAnswer(
            task_id=row.task_id,
            answer_name=row.answer_name,
            words=row.words,
            body=row.body,
            run=row.run,
            error_code=None if row.error is None else json.loads(row.error)["code"],
        )
        for row in await connection.execute(query)
    ]


async def answer_of_result(connection: AsyncConnection, result_id: str, *, owner: str | None) -> JudgedAnswer | None:
    """Return the outcome that one result records, or None. ``owner`` limits the query. ``words`` is 0."""
    columns = (results.c.task_id, results.c.answer_name, results.c.body)
    answers_only = results.c.kind == JobKind.ANSWER
    query = select(*columns).where(results.c.id == result_id, answers_only, *owned_by(owner))
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else JudgedAnswer(**row, words=0, error_code=None)


async def unfinished_answers(connection: AsyncConnection, agent: str, *, owner: str | None, run: str | None) -> int:
    """Return the number of queued or running jobs of an agent, or of one of its runs."""
    waiting = [jobs.c.kind == JobKind.ANSWER, jobs.c.status.in_([JobStatus.QUEUED, JobStatus.RUNNING])]
    of_owner = equal((jobs.c.owner, owner), (jobs.c.run, run))
    query = select(func.count()).select_from(jobs).where(jobs.c.agent == agent, *waiting, *of_owner)
    return int((await connection.execute(query)).scalar_one())


async def judged_agents(connection: AsyncConnection, *, owner: str | None) -> list[str]:
    """Return all agents that have a finished job, sorted."""
    query = select(jobs.c.agent).where(*_finished(owner)).distinct().order_by(jobs.c.agent)
    return list((await connection.execute(query)).scalars())


def _listed(chosen: ListFilter, before: str | None, status: str | None) -> list[ColumnElement[bool]]:
    filters = [results.c.kind == JobKind.ANSWER, *chosen.conditions(results)]
    return [*filters, *below(results.c.id, before), *equal((results.c.status, status))]


def owned_by(owner: str | None) -> list[ColumnElement[bool]]:
    """Return the filter for results of one owner; empty for None."""
    return equal((results.c.owner, owner))


def _finished(owner: str | None) -> list[ColumnElement[bool]]:
    finished = and_(jobs.c.kind == JobKind.ANSWER, jobs.c.status.in_([JobStatus.SUCCEEDED, JobStatus.FAILED]))
    return [finished, *equal((jobs.c.owner, owner))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOrigin:
    """Result without its body. ``run`` is the label that the owner gave to the submission."""

    result_id: str
    job_id: str
    submission_id: str
    agent: str
    task_id: str
    answer_name: str
    answer_sha256: str
    run: str | None
    model: str | None
    status: str
    final_score: float
    score: Score | None
    created_at: datetime


async def origin_of(connection: AsyncConnection, result_id: str, *, owner: str | None) -> ResultOrigin | None:
    """Return the origin of one result, or None. ``owner`` limits the query to one owner."""
    row = (await connection.execute(_origins().where(results.c.id == result_id, *owned_by(owner)))).mappings().first()
    return None if row is None else _origin(row)


async def list_origins(
    connection: AsyncConnection,
    *,
    limit: int,
    chosen: ListFilter,
    before: str | None,
) -> list[ResultOrigin]:
    """Return the results of ``list_results`` without their bodies."""
    query = _origins().where(*_listed(chosen, before, None)).order_by(results.c.id.desc()).limit(limit)
    return [_origin(row) for row in (await connection.execute(query)).mappings()]


async def judged_text(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> str | None:
    """Return the submitted text of the answer that a result judges, or None if there is no such result."""
    query = (
        select(answers.c.text)
        .join(jobs, jobs.c.answer_sha256 == answers.c.sha256)
        .join(results, results.c.job_id == jobs.c.id)
        .where(results.c.id == result_id, *owned_by(owner))
    )
    return (await connection.execute(query)).scalar_one_or_none()


def _origin(row: RowMapping) -> ResultOrigin:
    values = dict(row)
    return ResultOrigin(score=stored_score(values.pop("score_low"), values.pop("score_high")), **values)


def _origins() -> Select[tuple[object, ...]]:
    return (
        select(
            results.c.id.label("result_id"),
            results.c.job_id,
            jobs.c.submission_id,
            results.c.agent,
            results.c.task_id,
            results.c.answer_name,
            jobs.c.answer_sha256,
            jobs.c.run,
            jobs.c.model,
            results.c.status,
            results.c.final_score,
            results.c.score_low,
            results.c.score_high,
            results.c.created_at,
        )
        .join(jobs, jobs.c.id == results.c.job_id)
        .where(results.c.kind == JobKind.ANSWER)
    )


def result_source_rows(result_id: str, body: str) -> list[dict[str, Any]]:
    """Return one row per page that the answer or a leaf cites. Blocking: large results take time to parse.

    ``usd`` is None if the price of a leaf's model is unknown.
    """
    result = json.loads(body)
    rows: dict[str, dict[str, Any]] = {}
    for page in result.get("pages") or ():
        _source_row(rows, result_id, str(page["url"]))
    for leaf in leaves_of(result):
        usage = leaf.get("usage") or {}
        # Two spellings of the same URL in one leaf count once.
        for url in {canonical_key(url): url for url in map(str, leaf.get("sources") or ())}.values():
            row = _source_row(rows, result_id, url)
            row["leaves"] += 1
            row["open_leaves"] += leaf.get("outcome") in _OPEN_OUTCOMES
            row["calls"] += int(usage.get("calls") or 0)
            usd = usage.get("usd") if usage else 0.0
            row["usd"] = None if usd is None or row["usd"] is None else row["usd"] + float(usd)
    return list(rows.values())


async def _insert_sources(connection: AsyncConnection, result_id: str, body: str) -> None:
    """Store the cited URLs of a result. Call in the transaction that stores the result."""
    rows = await asyncio.to_thread(result_source_rows, result_id, body)
    if rows:
        await connection.execute(insert(result_sources), rows)


def _source_row(rows: dict[str, dict[str, Any]], result_id: str, url: str) -> dict[str, Any]:
    digest = key_digest(canonical_key(url))
    if digest not in rows:
        rows[digest] = {
            "result_id": result_id,
            "key_sha256": digest,
            "url": storable_text(url),
            "leaves": 0,
            "open_leaves": 0,
            "calls": 0,
            "usd": 0.0,
        }
    return rows[digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScore:
    """Scores of one run of an agent at one task by one judge, over the newest result of each answer.

    ``score`` and ``success`` are means with bounds over the answers that have a score; ``success`` is the share of
    answers with a full score. ``result_id`` is the newest result.
    """

    task_id: str
    agent: str
    run: str | None
    score: Score
    success: Score
    answers: int
    incomplete: int
    judge: str
    result_id: str
    last_judged_at: datetime


def newest_of_answers(
    *more: ColumnElement[Any], owner: str | None, task_id: str | None, agent: str | None = None
) -> Subquery:
    """Return the newest result of each answer of each run. Results that differ in ``more`` are of different answers."""
    answer = (results.c.owner, results.c.task_id, results.c.agent, jobs.c.run, results.c.answer_name, *more)
    columns = [results.c[name] for name in ("id", "job_id", "status", "score_low", "score_high", "created_at")]
    filters = [results.c.kind == JobKind.ANSWER]
    filters += equal((results.c.owner, owner), (results.c.task_id, task_id), (results.c.agent, agent))
    query = select(*answer, *columns).join(jobs, jobs.c.id == results.c.job_id).where(*filters)
    return query.order_by(*answer, results.c.id.desc()).ext(distinct_on(*answer)).subquery()


async def task_scores(
    connection: AsyncConnection, *, owner: str | None, task_id: str | None, agent: str | None
) -> list[TaskScore]:
    """Return the scores by task, agent, run and judge, the best of each task first. All parameters are filters."""
    newest = newest_of_answers(results.c.model, owner=owner, task_id=task_id, agent=agent)
    low, high = func.avg(newest.c.score_low), func.avg(newest.c.score_high)
    group = (newest.c.task_id, newest.c.agent, newest.c.run, newest.c.model)
    query = (
        select(
            *group,
            low.label("low"),
            high.label("high"),
            func.avg(case((newest.c.score_low >= FULL_SCORE, 1.0), else_=0.0)).label("success_low"),
            func.avg(case((newest.c.score_high >= FULL_SCORE, 1.0), else_=0.0)).label("success_high"),
            func.count().label("answers"),
            func.sum(case((newest.c.status != "complete", 1), else_=0)).label("incomplete"),
            func.max(newest.c.id).label("result_id"),
            func.max(newest.c.created_at).label("last_judged_at"),
        )
        .where(newest.c.score_low.is_not(None))  # otherwise nothing applies
        .group_by(*group)
        .order_by(newest.c.task_id, low.desc(), newest.c.agent, newest.c.run, newest.c.model)
    )
    return [
        TaskScore(
            task_id=row.task_id,
            agent=row.agent,
            run=row.run,
            score=bounded_score(row.low, row.high),
            success=bounded_score(float(row.success_low), float(row.success_high)),
            answers=row.answers,
            incomplete=row.incomplete,
            judge=row.model,
            result_id=row.result_id,
            last_judged_at=row.last_judged_at,
        )
        for row in await connection.execute(query)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Found object. ``kind`` and ``id`` are those of ``GET /v1/search``."""

    kind: str
    id: str
    label: str
    detail: str


async def search(connection: AsyncConnection, words: str, *, limit: int, owner: str | None = None) -> list[Found]:
    """Return objects that contain ``words`` in their names, at most ``limit`` of each kind. ``owner`` is a filter."""
    own_jobs = [jobs.c.kind == JobKind.ANSWER, *equal((jobs.c.owner, owner))]
    agents = select(jobs.c.agent, jobs.c.agent, literal("")).where(*own_jobs, contains(jobs.c.agent, words)).distinct()
    runs = select(jobs.c.agent + "@" + jobs.c.run, jobs.c.run, jobs.c.agent).where(
        *own_jobs, contains(jobs.c.run, words)
    )
    runs = runs.group_by(jobs.c.agent, jobs.c.run)
    named = or_(*(contains(column, words) for column in (results.c.id, results.c.answer_name)))
    judged = select(results.c.id, results.c.answer_name, results.c.agent + " · " + results.c.task_id).where(
        results.c.kind == JobKind.ANSWER, *owned_by(owner), named
    )
    pages = select(captures.c.id, captures.c.url, captures.c.outcome).where(contains(captures.c.url, words))
    pages = pages if owner is None else pages.where(shown_to(owner))
    found = []
    for kind, query in (
        ("agent", agents.order_by(jobs.c.agent)),
        ("run", runs.order_by(func.max(jobs.c.id).desc())),
        ("result", judged.order_by(results.c.id.desc())),
        ("page", pages.order_by(captures.c.id.desc())),
    ):
        rows = await connection.execute(query.limit(limit))
        found += [Found(kind=kind, id=id, label=label, detail=detail) for id, label, detail in rows]
    return found


def contains(column: ColumnElement[str], words: str) -> ColumnElement[bool]:
    """Return whether a column contains ``words``, in lower or upper case."""
    return column.icontains(words, autoescape=True)
