"""The running service: everything that an HTTP request or a worker needs, put together and taken down in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import structlog

from answers.submission import Answer
from app import pipeline
from app.jobs.control import JobControl
from app.jobs.events import JobEvents
from app.jobs.execution import Evaluate, JobExecution
from app.jobs.intake import Intake
from app.jobs.pausing import Pausing
from app.jobs.queue import JobQueue, WorkerPace
from app.jobs.takeover import Takeover
from app.jobs.worker import Worker
from app.metrics import Metrics
from app.progress import Report
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from app.storage.database import Database, open_database
from app.storage.records import Job

_log = structlog.get_logger(__name__)

OpenRuntime: TypeAlias = Callable[[Settings, Database], AbstractAsyncContextManager[Runtime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process's share of the service. ``worker`` is None where answers are only taken in."""

    settings: Settings
    runtime: Runtime
    database: Database
    intake: Intake
    control: JobControl
    events: JobEvents
    metrics: Metrics
    worker: Worker | None

    def checks(self) -> list[dict[str, Any]]:
        """What stands in the way of work, besides the database."""
        tasks = len(self.runtime.catalogue.judges)
        broken = len(self.runtime.catalogue.broken)
        found = [{"name": "judges", "ok": tasks > 0, "detail": f"{tasks} tasks, {broken} broken judge files"}]
        if self.worker is not None:
            detail = "" if self.worker.working else "the embedded worker is not taking jobs"
            found.append({"name": "worker", "ok": self.worker.working, "detail": detail})
        return found


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    concurrency: int,
    metrics: Metrics,
    runtime: OpenRuntime | None = None,
    evaluate: Evaluate | None = None,
) -> AsyncIterator[Service]:
    """The service for as long as the block lasts; at its end running jobs are drained or handed back.

    ``concurrency`` is how many jobs this process works on side by side; 0: none.

    Raises:
        WrongSettings, StorageError: it cannot be started.
    """
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        opened = await stack.enter_async_context((runtime or open_runtime)(settings, database))
        queue = await stack.enter_async_context(JobQueue(database).opened())
        takeover = Takeover(database, queue, clock=opened.clock, stalled_s=settings.stalled_s)
        attempts = settings.max_attempts
        worker = None
        if concurrency:
            pausing = Pausing(database, queue, state=opened.models.state)
            execution = JobExecution(
                database,
                takeover,
                pausing,
                evaluate or judged_by(opened),
                clock=opened.clock,
                ids=opened.ids,
                redactor=opened.redactor,
                metrics=metrics,
                deadline_s=settings.job_deadline_s,
            )
            worker = Worker(database, queue, execution, takeover, pausing, _pace(settings, concurrency))
        events = JobEvents(database)
        service = Service(
            settings=settings,
            runtime=opened,
            database=database,
            intake=Intake(database, queue, clock=opened.clock, ids=opened.ids, attempts_allowed=attempts),
            control=JobControl(
                database,
                queue,
                clock=opened.clock,
                attempts_allowed=attempts,
                mended=opened.models.let_one_through,
            ),
            events=events,
            metrics=metrics,
            worker=worker,
        )
        work = {"job events": events.run(), "loop watch": metrics.watch_loop()}
        if worker is not None:
            work["worker"] = worker.run()
        async with _beside(work):
            yield service


def judged_by(runtime: Runtime) -> Evaluate:
    """How a worker judges: the pipeline, with the job's own model if it names one."""

    async def evaluate(job: Job, answer: Answer, *, result_id: str, progress: Report) -> dict[str, Any]:
        return await pipeline.evaluate(
            runtime,
            judge=runtime.judge(job.task_id),
            agent=job.agent,
            answer=answer,
            model=job.model,
            result_id=result_id,
            progress=progress,
        )

    return evaluate


def _pace(settings: Settings, concurrency: int) -> WorkerPace:
    return WorkerPace(
        concurrency=concurrency,
        heartbeat_s=settings.heartbeat_s,
        stalled_s=settings.stalled_s,
        drain_s=settings.drain_s,
    )


@asynccontextmanager
async def _beside(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run endless work during the block and end it with it. Work that dies early is logged, the rest goes on."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background work died", work=task.get_name(), exc_info=error)

    tasks = [asyncio.create_task(one, name=name) for name, one in work.items()]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
