"""Long polling: waiting for jobs to end before their state is returned."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, Final

from fastapi import Query, Request

from app.access.keys import Caller
from app.api.problems import Problem
from app.service import Service

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
