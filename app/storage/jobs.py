"""Queries for jobs. Changes by a worker are guarded by a fencing token.

Call every function inside a transaction. Each change increments the revision of the row and sends a notification in the
same transaction, so followers never miss the last state.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row
from sqlalchemy import (
    ColumnElement,
    Executable,
    Float,
    RowMapping,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from app.progress import NO_PROGRESS, Progress
from app.storage.direct_pool import DirectConnection
from app.storage.listings import ALL, ListFilter, below, equal
from app.storage.records import (
    PAUSED,
    TERMINAL,
    Fence,
    Job,
    JobError,
    JobKind,
    JobStatus,
    SubmissionRecord,
    stored_score,
)
from app.storage.tables import answers, jobs, results, submissions
from rubrics.scoring import Score

CHANNEL = "assay_jobs"
_FIELDS = tuple(field.name for field in dataclasses.fields(Job))


async def get_job(
    connection: AsyncConnection, job_id: str, *, owner: str | None = None, lock: bool = False
) -> Job | None:
    """Return one job, or None. ``owner`` limits the query to one owner. ``lock`` locks the row (FOR UPDATE)."""
    query = select(jobs).where(jobs.c.id == job_id, *equal((jobs.c.owner, owner)))
    row = (await connection.execute(query.with_for_update() if lock else query)).mappings().first()
    return None if row is None else _job(row)


async def poll_job(connection: DirectConnection, job_id: str, *, owner: str | None) -> Job | None:
    """Return the same as ``get_job`` without SQLAlchemy. Clients poll this most often."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_PEEK, [job_id, owner, owner])
        row = await cursor.fetchone()
    return None if row is None else _job(row)


async def get_jobs(connection: AsyncConnection, job_ids: Iterable[str]) -> list[Job]:
    query = select(jobs).where(jobs.c.id.in_(list(job_ids)))
    return await _jobs(connection, query)


async def job_counts(connection: AsyncConnection, submission_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the number of jobs by status, for each submission."""
    counted = {
        submission_id: dict.fromkeys((status.value for status in JobStatus), 0) for submission_id in submission_ids
    }
    query = select(jobs.c.submission_id, jobs.c.status, func.count()).where(jobs.c.submission_id.in_(submission_ids))
    for submission_id, status, count in await connection.execute(query.group_by(jobs.c.submission_id, jobs.c.status)):
        counted[submission_id][status] = count
    return counted


async def jobs_of_submissions(connection: AsyncConnection, *submission_ids: str, lock: bool = False) -> list[Job]:
    """Return the jobs of submissions in the order of their answers. ``lock`` locks their rows (FOR UPDATE)."""
    query = select(jobs).where(jobs.c.submission_id.in_(submission_ids)).order_by(jobs.c.submission_id, jobs.c.position)
    return await _jobs(connection, query.with_for_update() if lock else query)


async def list_jobs(
    connection: AsyncConnection,
    *,
    limit: int,
    chosen: ListFilter = ALL,
    before: str | None = None,
    status: JobStatus | None = None,
    kind: JobKind | None = None,
    submission_id: str | None = None,
    superseded: bool | None = None,
) -> list[Job]:
    """Return jobs, newest first. ``before`` is the ID of the last job of the previous page.

    ``superseded``: whether there is a newer job for the same answer.
    """
    filters = [*chosen.conditions(jobs), *below(jobs.c.id, before)]
    filters += equal((jobs.c.status, status), (jobs.c.kind, kind), (jobs.c.submission_id, submission_id))
    if superseded is not None:
        newer = jobs.alias()
        same = [newer.c[name] == jobs.c[name] for name in ("owner", "agent", "task_id", "answer_name", "kind")]
        is_superseded = exists().where(*same, newer.c.run.is_not_distinct_from(jobs.c.run), newer.c.id > jobs.c.id)
        filters.append(is_superseded if superseded else ~is_superseded)
    query = select(jobs).where(and_(True, *filters)).order_by(jobs.c.id.desc()).limit(limit)
    return await _jobs(connection, query)


async def scores_of(connection: AsyncConnection, listed: Sequence[Job]) -> dict[str | None, Score | None]:
    """Return the scores of the results of jobs, by ID of the result."""
    query = select(results.c.id, results.c.score_low, results.c.score_high)
    rows = await connection.execute(query.where(results.c.id.in_([job.result_id for job in listed])))
    return {row.id: stored_score(row.score_low, row.score_high) for row in rows}


async def count_by_status(connection: AsyncConnection) -> dict[JobStatus, int]:
    query = select(jobs.c.status, func.count()).group_by(jobs.c.status)
    counted = {JobStatus(row[0]): int(row[1]) for row in await connection.execute(query)}
    return {status: counted.get(status, 0) for status in JobStatus}


async def count_by_stage(connection: AsyncConnection) -> dict[str, int]:
    """Count the unfinished jobs by stage. Jobs without a stage count as ``waiting``."""
    query = select(jobs.c.stage, func.count()).where(jobs.c.status.not_in(list(TERMINAL))).group_by(jobs.c.stage)
    return {str(stage or "waiting"): int(count) for stage, count in await connection.execute(query)}


async def answer_text(connection: AsyncConnection, sha256: str) -> str:
    return str((await connection.execute(select(answers.c.text).where(answers.c.sha256 == sha256))).scalar_one())


async def claim(connection: AsyncConnection, job_id: str, queue_id: int, *, now: datetime) -> Job | None:
    """Start the next attempt of a job. Return None if the queue entry is outdated."""
    return await _change(
        connection,
        and_(
            jobs.c.id == job_id,
            jobs.c.queue_id == queue_id,
            jobs.c.status.in_([JobStatus.QUEUED, JobStatus.RUNNING]),
        ),
        status=JobStatus.RUNNING,
        attempts=jobs.c.attempts + 1,
        started_at=func.coalesce(jobs.c.started_at, func.greatest(now, jobs.c.created_at)),
        stage=None,
        **_counts(NO_PROGRESS),
    )


async def write_progress(connection: AsyncConnection, fence: Fence, progress: Progress) -> bool:
    """Write the progress of a job. Return False if the fencing token is no longer valid."""
    return await _change(connection, _fenced(fence), stage=progress.stage, **_counts(progress)) is not None


async def succeed(
    connection: AsyncConnection, fence: Fence, *, result_id: str, progress: Progress, now: datetime
) -> Job | None:
    """Set a job to succeeded. Return None if the fencing token is no longer valid; then store no result."""
    return await _change(
        connection,
        _fenced(fence),
        status=JobStatus.SUCCEEDED,
        stage=None,
        result_id=result_id,
        error=None,
        finished_at=_not_before_start(now),
        **_counts(progress),
    )


async def fail(connection: AsyncConnection, fence: Fence, error: JobError, *, now: datetime) -> bool:
    """Set a job to failed. Return False if the fencing token is no longer valid."""
    written = json.dumps(dataclasses.asdict(error))
    changed = await _change(
        connection,
        _fenced(fence),
        status=JobStatus.FAILED,
        stage=None,
        error=written,
        finished_at=_not_before_start(now),
    )
    return changed is not None


async def pause(connection: AsyncConnection, fence: Fence, error: JobError) -> bool:
    """Pause a running job and remove its queue entry. The attempt does not count.

    Return False if the fencing token is no longer valid.
    """
    changed = await _change(connection, _fenced(fence), attempts=jobs.c.attempts - 1, **_paused_values(error))
    return changed is not None


async def pause_for_budget(
    connection: AsyncConnection,
    fence: Fence,
    error: JobError,
    *,
    budget_id: str,
    limit_usd: float,
    result_id: str | None,
) -> Job | None:
    """Pause a running job until the limit of a budget is raised. Return None if the fencing token is no longer valid.

    The attempt does not count towards the maximum, but keeps its number, because it may have a result (``result_id``).
    """
    return await _change(
        connection,
        _fenced(fence),
        attempts_allowed=jobs.c.attempts_allowed + 1,
        paused_budget_id=budget_id,
        paused_limit=limit_usd,
        result_id=func.coalesce(result_id, jobs.c.result_id),
        **_paused_values(error),
    )


async def resume(connection: AsyncConnection, job_id: str, *, queue_id: int) -> Job | None:
    """Queue a paused job again. Return None if it is not paused."""
    return await _change(
        connection,
        and_(jobs.c.id == job_id, _paused()),
        stage=None,
        queue_id=queue_id,
        error=None,
        paused_budget_id=None,
        paused_limit=None,
        **_counts(NO_PROGRESS),
    )


async def paused_models(connection: AsyncConnection) -> list[str | None]:
    """Return the models (None: the default model) that paused jobs wait for."""
    query = select(jobs.c.model).where(_paused(), jobs.c.paused_budget_id.is_(None)).distinct()
    return list((await connection.execute(query)).scalars())


async def paused_jobs(connection: AsyncConnection, model: str | None, *, limit: int) -> list[Job]:
    """Return the jobs that are paused because of a model, oldest first."""
    query = select(jobs).where(_paused(), jobs.c.paused_budget_id.is_(None), jobs.c.model.is_not_distinct_from(model))
    return await _jobs(connection, query.order_by(jobs.c.id).limit(limit))


async def jobs_with_raised_budget(
    connection: AsyncConnection, *, installation: Mapping[str, float | None], limit: int
) -> list[Job]:
    """Return the jobs that are paused because of a budget whose limit has been raised since, oldest first.

    ``installation`` maps the installation's budgets to their current limits (None: no limit). All other budgets belong
    to submissions.
    """
    present = case(
        *((jobs.c.paused_budget_id == budget_id, literal(amount, Float)) for budget_id, amount in installation.items()),
        else_=submissions.c.budget_usd,
    )
    query = (
        select(jobs)
        .outerjoin(submissions, submissions.c.id == jobs.c.paused_budget_id)
        .where(_paused(), jobs.c.paused_budget_id.is_not(None), or_(present.is_(None), present > jobs.c.paused_limit))
    )
    return await _jobs(connection, query.order_by(jobs.c.id).limit(limit))


async def requeue(connection: AsyncConnection, fence: Fence, *, queue_id: int, extra_attempts: int = 0) -> bool:
    """Give a queued or running job a new queue entry. This invalidates the old fencing token."""
    changed = await _change(
        connection,
        and_(jobs.c.id == fence.job_id, jobs.c.queue_id == fence.queue_id, jobs.c.status.not_in(list(TERMINAL))),
        status=JobStatus.QUEUED,
        stage=None,
        queue_id=queue_id,
        attempts_allowed=jobs.c.attempts_allowed + extra_attempts,
    )
    return changed is not None


async def cancel(connection: AsyncConnection, job_id: str, *, now: datetime) -> Job | None:
    """Cancel a job. Return None if it has already ended."""
    return await _change(
        connection,
        and_(jobs.c.id == job_id, jobs.c.status.not_in(list(TERMINAL))),
        status=JobStatus.CANCELLED,
        stage=None,
        finished_at=_not_before_start(now),
    )


async def cancel_jobs(
    connection: AsyncConnection, submission_id: str, *, owner: str | None, now: datetime
) -> list[Job]:
    """Cancel all unfinished jobs of a submission, and return them. Rows are locked in the order of their IDs."""
    conditions = equal((jobs.c.submission_id, submission_id), (jobs.c.owner, owner))
    conditions.append(jobs.c.status.not_in(list(TERMINAL)))
    locked = select(jobs.c.id).where(*conditions).order_by(jobs.c.id).with_for_update()
    ids = list((await connection.execute(locked)).scalars())
    query = (
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(
            revision=jobs.c.revision + 1,
            status=JobStatus.CANCELLED,
            stage=None,
            finished_at=_not_before_start(now),
        )
        .returning(*jobs.c)
    )
    cancelled = await _jobs(connection, query) if ids else []
    await connection.execute(select(func.pg_notify(CHANNEL, jobs.c.id)).where(jobs.c.id.in_(ids)))
    return cancelled


async def restart(connection: AsyncConnection, job_id: str, *, queue_id: int, attempts: int) -> Job | None:
    """Queue a job that has ended again, with ``attempts`` new attempts. Return None if it has not ended."""
    return await _change(
        connection,
        and_(jobs.c.id == job_id, jobs.c.status.in_(list(TERMINAL))),
        status=JobStatus.QUEUED,
        stage=None,
        queue_id=queue_id,
        attempts_allowed=jobs.c.attempts + attempts,
        error=None,
        result_id=None,
        started_at=None,
        finished_at=None,
        **_counts(NO_PROGRESS),
    )


async def jobs_of_entries(connection: AsyncConnection, queue_ids: Iterable[int]) -> list[Job]:
    """Return the unfinished jobs of these queue entries."""
    query = select(jobs).where(jobs.c.queue_id.in_(list(queue_ids)), jobs.c.status.not_in(list(TERMINAL)))
    return await _jobs(connection, query)


async def jobs_without_entry(connection: AsyncConnection) -> list[Job]:
    """Return unfinished jobs whose queue entry is missing or done, so no worker would run them. Skip paused jobs."""
    query = text(
        "SELECT jobs.* FROM jobs LEFT JOIN procrastinate_jobs entry ON entry.id = jobs.queue_id"
        " WHERE jobs.status IN ('queued', 'running') AND (entry.id IS NULL OR entry.status NOT IN ('todo', 'doing'))"
        " AND NOT (jobs.status = 'queued' AND jobs.stage IS NOT DISTINCT FROM :paused)"
    )
    return await _jobs(connection, query.bindparams(paused=PAUSED))


async def is_fence_valid(connection: AsyncConnection, fence: Fence) -> bool:
    """Return whether the fencing token is valid. If it is, it stays valid until the transaction ends."""
    query = select(jobs.c.id).where(_fenced(fence)).with_for_update(read=True)
    return (await connection.execute(query)).first() is not None


def _not_before_start(now: datetime) -> ColumnElement[datetime]:
    """Return the end time, but not before the start: clocks of machines differ and can be set back."""
    return func.greatest(now, jobs.c.started_at, jobs.c.created_at)


def _counts(progress: Progress) -> dict[str, int]:
    return {
        "pages_done": progress.pages_done,
        "pages_total": progress.pages_total,
        "leaves_done": progress.leaves_done,
        "leaves_total": progress.leaves_total,
    }


def _paused() -> ColumnElement[bool]:
    return and_(jobs.c.status == JobStatus.QUEUED, jobs.c.stage == PAUSED)


def _paused_values(error: JobError) -> dict[str, Any]:
    return {
        "status": JobStatus.QUEUED,
        "stage": PAUSED,
        "queue_id": None,
        "error": json.dumps(dataclasses.asdict(error)),
        "started_at": None,
    }


def _fenced(fence: Fence) -> ColumnElement[bool]:
    return and_(
        jobs.c.id == fence.job_id,
        jobs.c.queue_id == fence.queue_id,
        jobs.c.attempts == fence.attempt,
        jobs.c.status == JobStatus.RUNNING,
    )


async def _change(connection: AsyncConnection, condition: ColumnElement[bool], **values: Any) -> Job | None:
    query = update(jobs).where(condition).values(revision=jobs.c.revision + 1, **values).returning(*jobs.c)
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        return None
    await connection.execute(select(func.pg_notify(CHANNEL, row["id"])))
    return _job(row)


async def _jobs(connection: AsyncConnection, query: Executable) -> list[Job]:
    return [_job(row) for row in (await connection.execute(query)).mappings()]


_PEEK = f"SELECT {', '.join(_FIELDS)} FROM jobs WHERE id = %s AND (%s::text IS NULL OR owner = %s)"  # noqa: S608 - names


def _job(row: RowMapping | dict[str, Any]) -> Job:
    values: dict[str, Any] = {name: row[name] for name in _FIELDS}
    values["status"] = JobStatus(row["status"])
    values["kind"] = JobKind(row["kind"])
    values["error"] = None if row["error"] is None else JobError(**json.loads(row["error"]))
    return Job(**values)


async def get_submission(
    connection: AsyncConnection, submission_id: str, *, owner: str | None
) -> SubmissionRecord | None:
    """Return one submission, or None. ``owner`` limits the query to one owner."""
    query = select(submissions).where(submissions.c.id == submission_id, *equal((submissions.c.owner, owner)))
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _submission(row)


async def get_submissions(connection: AsyncConnection, submission_ids: Sequence[str]) -> list[SubmissionRecord]:
    """Return submissions, newest first."""
    query = select(submissions).where(submissions.c.id.in_(submission_ids)).order_by(submissions.c.id.desc())
    return [_submission(row) for row in (await connection.execute(query)).mappings()]


def _submission(row: RowMapping) -> SubmissionRecord:
    return SubmissionRecord(**{**row, "metadata": json.loads(row["metadata"])})


async def set_budget(
    connection: AsyncConnection, submission_id: str, budget_usd: float | None, *, owner: str | None
) -> None:
    """Set the budget of a submission. ``owner`` limits the update to one owner."""
    chosen = (submissions.c.id == submission_id, *equal((submissions.c.owner, owner)))
    await connection.execute(update(submissions).where(*chosen).values(budget_usd=budget_usd))
