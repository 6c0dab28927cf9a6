"""Composition of the running service: the components that HTTP requests and the worker need."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import structlog

from app.access.keys import KeyAuthenticator, RateLimiter, StreamLimiter
from app.clock import SystemClock
from app.engine.runtime import Runtime, open_runtime
from app.jobs.budget_ledger import BudgetLedger
from app.jobs.evaluated import EvaluatedResults
from app.jobs.evaluator import JobEvaluator, JobRunner
from app.jobs.events import JobEvents
from app.jobs.execution import EvaluateJob, JobExecutor, Takeover
from app.jobs.intake import Intake
from app.jobs.pausing import JobControl, JobPauser
from app.jobs.queue import JobQueue, QueueLimit, WorkerOptions
from app.jobs.webhooks import WebhookSender
from app.jobs.worker import Worker
from app.observability.metrics import Metrics, RequestMetrics
from app.settings import Settings, check_bind
from app.storage.database import Database, open_database
from cache.egress.proxy import EgressProxy

_log = structlog.get_logger(__name__)


OpenRuntime: TypeAlias = Callable[[Settings, Database], AbstractAsyncContextManager[Runtime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Components of the service in one process. ``worker`` is None in a process that only serves HTTP."""

    settings: Settings
    runtime: Runtime
    database: Database
    intake: Intake
    control: JobControl
    events: JobEvents
    keys: KeyAuthenticator
    rate_limiter: RateLimiter
    streams: StreamLimiter
    metrics: Metrics
    ledger: BudgetLedger
    worker: Worker | None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when shutdown begins. The service still answers requests, but ``/readyz`` reports 503."""

    async def drain(self) -> None:
        """Stop accepting jobs and wait until the running jobs have finished or were returned to the queue."""
        self.stopping.set()
        if self.worker is not None:
            await self.worker.drain()

    def checks(self) -> list[dict[str, Any]]:
        """Return the readiness checks, except the database check."""
        tasks = len(self.runtime.catalogue.judges)
        broken = len(self.runtime.catalogue.broken)
        reports = [{"name": "judges", "ok": tasks > 0, "detail": f"{tasks} tasks, {broken} broken task files"}]
        if self.stopping.is_set():
            reports.append({"name": "stopping", "ok": False, "detail": "the service is shutting down"})
        elif self.worker is not None:
            detail = "" if self.worker.working else "the embedded worker is not taking jobs"
            reports.append({"name": "worker", "ok": self.worker.working, "detail": detail})
        return reports


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    concurrency: int,
    metrics: Metrics,
    listens: bool = True,
    host: str = "127.0.0.1",
    runtime: OpenRuntime | None = None,
    evaluate: EvaluateJob | None = None,
    runners: Mapping[str, JobRunner] | None = None,
) -> AsyncIterator[Service]:
    """Run the service during the block. On exit, running jobs finish or return to the queue.

    Args:
        concurrency: Maximum number of concurrent jobs in this process. 0 starts no worker.
        listens: Whether the database notifies this process of new jobs and of changes. Otherwise ``events`` is silent,
            and the worker looks for jobs every second.
        host: Address the HTTP server listens on.
        runners: Job runners by job kind, for kinds other than the judging of one answer.

    Raises:
        InvalidSettings, StorageError: The service cannot start.
    """
    check_bind(host, keys=True, chosen_keys=settings.configured_keys)  # before the database is created or migrated
    runners = runners or {}
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        keys = KeyAuthenticator(settings, database, SystemClock())
        await keys.reload()
        check_bind(host, keys=keys.required)
        opened = await stack.enter_async_context((runtime or open_runtime)(settings, database))
        if opened.shared_replies is not None:
            opened.shared_replies.on_event = lambda event, count: metrics.shared_replies.labels(event).inc(count)
        queue = await stack.enter_async_context(JobQueue(database).open())
        ledger = await stack.enter_async_context(create_ledger(database, settings).running())
        worker = None
        if concurrency:
            evaluate = evaluate or JobEvaluator(opened, database, ledger, RequestMetrics(metrics), runners)
            options = worker_options(settings, concurrency=concurrency, listens=listens)
            worker = create_worker(opened, database, queue, evaluate, metrics, runners, options)
        events, room = JobEvents(database), QueueLimit(settings.max_queued)
        service = Service(
            settings=settings,
            runtime=opened,
            database=database,
            intake=Intake(database, room, clock=opened.clock, ids=opened.ids, attempts_allowed=settings.max_attempts),
            control=JobControl(
                database,
                queue,
                clock=opened.clock,
                attempts_allowed=settings.max_attempts,
                allow_probe=opened.models.allow_probe,
            ),
            events=events,
            keys=keys,
            rate_limiter=RateLimiter(settings.rate_per_s, monotonic_s=time.monotonic),
            streams=StreamLimiter(settings.max_streams),
            metrics=metrics,
            ledger=ledger,
            worker=worker,
        )
        work = {
            "loop watch": metrics.monitor_event_loop(),
            "keys": keys.run(),
            "queue statistics": room.analyze_periodically(database),
            **({"job events": events.run()} if listens else {}),
            "evaluated results": EvaluatedResults(database, settings.data_dir, ids=opened.ids).run(),
            "webhooks": await _webhook_sender(stack, database, opened, metrics),
            **({} if worker is None else {"worker": worker.run()}),
        }
        async with _in_background(work):
            yield service


async def _webhook_sender(
    stack: AsyncExitStack, database: Database, runtime: Runtime, metrics: Metrics
) -> Coroutine[Any, Any, None]:
    """Open an egress proxy until ``stack`` ends, and return the background work that sends webhooks through it."""
    proxy = await stack.enter_async_context(EgressProxy(runtime.settings.egress_allow))
    return WebhookSender(
        database, proxy, clock=runtime.clock, count=lambda outcome: metrics.webhooks.labels(outcome).inc()
    ).run()


def create_worker(
    runtime: Runtime,
    database: Database,
    queue: JobQueue,
    evaluate: EvaluateJob,
    metrics: Metrics,
    runners: Mapping[str, JobRunner],
    options: WorkerOptions,
) -> Worker:
    settings = runtime.settings
    takeover = Takeover(database, queue, clock=runtime.clock, stalled_s=settings.stalled_s)
    pausing = JobPauser(
        database,
        queue,
        state=runtime.models.state,
        budget_usd=settings.budget_usd,
        budget_tokens=settings.budget_tokens,
    )
    execution = JobExecutor(
        database,
        takeover,
        pausing,
        evaluate,
        clock=runtime.clock,
        ids=runtime.ids,
        redactor=runtime.redactor,
        metrics=metrics,
        deadline_s=settings.job_deadline_s,
        deadlines={kind: each.deadline_s for kind, each in runners.items() if each.deadline_s is not None},
    )
    return Worker(database, queue, execution, takeover, pausing, options)


def create_ledger(database: Database, settings: Settings) -> BudgetLedger:
    return BudgetLedger(database, limit_usd=settings.budget_usd, limit_tokens=settings.budget_tokens)


def worker_options(settings: Settings, *, concurrency: int, listens: bool) -> WorkerOptions:
    """Return the options of a worker with the times of the settings."""
    return WorkerOptions(
        concurrency=concurrency,
        listens=listens,
        heartbeat_s=settings.stalled_s / 3,
        stalled_s=settings.stalled_s,
        drain_s=settings.drain_s,
    )


@asynccontextmanager
async def _in_background(work: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run background coroutines during the block. If one of them fails, log it and keep the others running."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background task failed", task=task.get_name(), exc_info=error)

    tasks = [asyncio.create_task(one, name=name) for name, one in work.items()]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
