"""Routes for jobs: list, read, follow, cancel and retry.

Long polling waits for jobs to end before their state is returned.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.examples import references
from app.api.models import JobOut, ListedJobOut, ListOut
from app.api.paging import FilterDep, IdFilter, IdPath, JobsPageDep
from app.api.problems import Problem, not_found
from app.api.request_fields import StrictJsonRoute
from app.async_tools import cancellable_sleep
from app.service import Service
from app.storage import jobs as rows
from app.storage.records import Job, JobKind, JobStatus

MAX_WAIT_S: Final = 60
WaitQuery = Annotated[
    float, Query(ge=0, le=MAX_WAIT_S, description="Return when the jobs have ended, or after this many seconds")
]


async def wait_for_end(
    service: Service, caller: Caller, request: Request, job_ids: Sequence[str], *, wait_s: float
) -> None:
    """Wait until all jobs have ended, ``wait_s`` has passed, the client disconnects or the service stops.

    Raises:
        Problem: The owner already has the maximum number of open streams and waiting requests (429).
    """
    if not wait_s or not job_ids:
        return
    check_streams(service, caller)
    with service.streams.open_stream(caller.owner):
        await first_of(jobs_ended(service, job_ids), _disconnected(request), service.stopping.wait(), timeout_s=wait_s)


def check_streams(service: Service, caller: Caller) -> None:
    """Raise Problem if the owner has the maximum number of open streams and waiting requests (429)."""
    if service.streams.is_full(caller.owner):
        maximum = service.settings.max_streams
        detail = f"The keys of one owner can have at most {maximum} open event streams and waiting requests"
        raise Problem(429, "TOO_MANY_STREAMS", detail, headers={"Retry-After": "5"})


async def jobs_ended(service: Service, job_ids: Sequence[str]) -> None:
    """Wait until all jobs have ended or were deleted."""
    for job_id in job_ids:
        with service.events.follow(job_id) as follower:
            while not follower.is_gone:
                job = await follower.next(timeout_s=MAX_WAIT_S)
                if job is not None and job.has_ended:
                    break


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def first_of(*waits: Coroutine[Any, Any, object], timeout_s: float | None = None) -> None:
    """Run the coroutines until one has ended or ``timeout_s`` has passed, then cancel the others."""
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        ended, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictJsonRoute)

_KEEPALIVE_S = 15.0
_BATCH_S = 1.0
"""Minimum time between two batches of a stream of all jobs."""


@router.get("")
async def list_jobs(
    service: ServiceDep,
    caller: ReaderDep,
    paging: JobsPageDep,
    chosen: FilterDep,
    status: JobStatus | None = None,
    submission_id: IdFilter = None,
    kind: JobKind | None = None,
    superseded: Annotated[bool | None, Query(description="Whether a newer job judges the same answer")] = None,
) -> ListOut[ListedJobOut]:
    """List jobs, newest first."""
    async with service.database.begin() as connection:
        jobs = await rows.list_jobs(
            connection,
            limit=paging.limit + 1,
            chosen=chosen.of_owner(caller.visible_owner),
            before=paging.cursor,
            status=status,
            submission_id=submission_id,
            kind=kind,
            superseded=superseded,
        )
        page, next_cursor = paging.split(jobs, lambda job: job.id)
        scores = await rows.scores_of(connection, page)
    items = [ListedJobOut.of(job, score=scores.get(job.result_id)) for job in page]
    return ListOut(items=items, next_cursor=next_cursor)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/event-stream": {}},
            "description": "An event ``open``, then an event ``job`` for each changed job",
            **references("Cache-Control"),
        }
    },
)
async def follow_jobs(service: ServiceDep, caller: ReaderDep) -> Response:
    """Follow all jobs by server-sent events. Changes of a job within a second are one event with the whole job.

    The stream contains no earlier changes: read the list of jobs after each event ``open``.
    """
    check_streams(service, caller)
    return StreamingResponse(
        _stream_all(service, caller), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


@router.get("/{job_id}")
async def get_job(
    job_id: IdPath, request: Request, service: ServiceDep, caller: ReaderDep, wait: WaitQuery = 0
) -> JobOut:
    """Return one job with its status, progress and error. With `wait`, return when it has ended."""
    job = await _job(service, caller, job_id)
    if wait and not job.has_ended:
        await wait_for_end(service, caller, request, [job_id], wait_s=wait)
        job = await _job(service, caller, job_id)
    return JobOut.of(job)


@router.post("/{job_id}/cancel")
async def cancel_job(job_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> JobOut:
    """Cancel a job. Captures and model requests in progress stop immediately."""
    return JobOut.of(await service.control.cancel(job_id, owner=caller.visible_owner))


@router.post("/{job_id}/retry", status_code=202)
async def retry_job(job_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> JobOut:
    """Queue a finished or paused job again."""
    return JobOut.of(await service.control.retry(job_id, owner=caller.visible_owner))


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"text/event-stream": {}},
            "description": "Events for status, stage and progress until the job ends",
            **references("Cache-Control"),
        },
        204: {"description": "The job has ended and the client has received its last event"},
    },
)
async def follow_job(
    job_id: IdPath,
    request: Request,
    service: ServiceDep,
    caller: ReaderDep,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Follow a job by server-sent events. Each event contains the whole job. The stream ends when the job has ended."""
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 19 else 0
    present = await _job(service, caller, job_id)
    if present.has_ended and present.revision <= seen:
        return Response(status_code=204)
    check_streams(service, caller)
    return StreamingResponse(
        # The event can be of a database that a backup has replaced.
        _stream(service, caller, job_id, min(seen, present.revision)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _stream_all(service: Service, caller: Caller) -> AsyncIterator[bytes]:
    with service.streams.open_stream(caller.owner), service.events.follow_owner(caller.visible_owner) as follower:
        yield format_sse_event(data_str="{}", event="open")
        while not follower.is_interrupted:
            for changed in await follower.next(timeout_s=_KEEPALIVE_S):
                yield format_sse_event(data_str=json.dumps(JobOut.of(changed).model_dump(mode="json")), event="job")
            yield KEEPALIVE_COMMENT
            await cancellable_sleep(_BATCH_S)


async def _stream(service: Service, caller: Caller, job_id: str, seen: int) -> AsyncIterator[bytes]:
    """Yield an event for each change, named ``status``, ``stage`` or ``progress`` after what changed."""
    with service.streams.open_stream(caller.owner), service.events.follow(job_id) as follower:
        before: Job | None = None
        while not follower.is_gone and (before is None or not before.has_ended):
            present = await follower.next(timeout_s=_KEEPALIVE_S)
            if present is None:
                yield KEEPALIVE_COMMENT
                continue
            if present.revision > seen:
                seen = present.revision
                data = json.dumps(JobOut.of(present).model_dump(mode="json"))
                yield format_sse_event(data_str=data, event=_what_changed(before, present), id=str(seen))
            before = present


def _what_changed(before: Job | None, present: Job) -> str:
    if before is None or before.status is not present.status:
        return "status"
    return "progress" if before.stage == present.stage else "stage"


async def _job(service: Service, caller: Caller, job_id: str) -> Job:
    async with service.database.pooled_connection() as connection:
        job = await rows.poll_job(connection, job_id, owner=caller.visible_owner)
    if job is None:
        raise not_found(f"job {job_id!r}")
    return job
