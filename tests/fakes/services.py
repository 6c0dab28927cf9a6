"""Parts of the service assembled for tests; everything outside the database is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from answers.submission import Answer, Submission
from app.clock import SortableIdGenerator, SystemClock
from app.jobs.execution import EvaluateJob, JobExecutor, Takeover
from app.jobs.intake import Intake
from app.jobs.pausing import JobControl, JobPauser
from app.jobs.queue import JobQueue, QueueLimit, WorkerOptions
from app.jobs.worker import Worker
from app.observability.logs import Redactor
from app.observability.metrics import Metrics
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.records import Job
from judges.llm.circuit import CircuitState

STALLED_S = 60.0
"""Long, because the process of a test may be suspended for seconds. Tests end a lease in the database."""
CANARY = "canary-secret-9f2c"


class ModelStates:
    """Scripted state of each model, and the models for which a probe was allowed."""

    def __init__(self) -> None:
        self.states: dict[str | None, CircuitState] = {None: CircuitState.OPEN}
        self.probed: list[str | None] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """The parts of one process. Create several on one database to simulate several processes."""

    database: Database
    queue: JobQueue
    intake: Intake
    control: JobControl
    takeover: Takeover
    pausing: JobPauser
    models: ModelStates

    @classmethod
    @asynccontextmanager
    async def opened(cls, database: Database, *, attempts: int = 3) -> AsyncIterator[Rig]:
        clock, models = SystemClock(), ModelStates()
        async with JobQueue(database).open() as queue:
            yield cls(
                database=database,
                queue=queue,
                intake=Intake(
                    database, QueueLimit(0), clock=clock, ids=SortableIdGenerator(clock), attempts_allowed=attempts
                ),
                control=JobControl(
                    database, queue, clock=clock, attempts_allowed=attempts, allow_probe=models.probed.append
                ),
                takeover=Takeover(database, queue, clock=clock, stalled_s=STALLED_S),
                pausing=JobPauser(database, queue, state=models.states.__getitem__),
                models=models,
            )

    def execution(self, evaluate: EvaluateJob, *, deadline_s: float = 300.0) -> JobExecutor:
        clock = SystemClock()
        return JobExecutor(
            self.database,
            self.takeover,
            self.pausing,
            evaluate,
            clock=clock,
            ids=SortableIdGenerator(clock),
            redactor=Redactor([CANARY]),
            metrics=Metrics(),
            deadline_s=deadline_s,
        )

    def worker(
        self,
        evaluate: EvaluateJob,
        *,
        drain_s: float = 0.0,
        concurrency: int = 4,
        deadline_s: float = 300.0,
        heartbeat_s: float = 0.2,
    ) -> Worker:
        options = WorkerOptions(
            concurrency=concurrency, heartbeat_s=heartbeat_s, stalled_s=STALLED_S, drain_s=drain_s, poll_s=0.2
        )
        return Worker(
            self.database,
            self.queue,
            self.execution(evaluate, deadline_s=deadline_s),
            self.takeover,
            self.pausing,
            options,
        )

    @asynccontextmanager
    async def running_worker(self, evaluate: EvaluateJob, **options: Any) -> AsyncIterator[Worker]:
        """Run a worker during the block, then stop it normally."""
        worker = self.worker(evaluate, **options)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def submit(self, *texts: str, agent: str = "demo", task_id: str = "task") -> list[str]:
        """Submit answers and return the ids of their jobs."""
        answers = tuple(Answer(name=f"answer_{nth}.md", text=text) for nth, text in enumerate(texts, start=1))
        submission = Submission(agent=agent, task_id=task_id, answers=answers)
        accepted = await self.intake.accept([submission], owner="local", respond=lambda all_: all_[0].as_json())
        return [job["id"] for job in accepted["jobs"]]

    async def job(self, job_id: str) -> Job:
        async with self.database.begin() as connection:
            found = await rows.get_job(connection, job_id)
        assert found is not None
        return found

    async def wait_for_job(self, job_id: str, *, within_s: float = 120.0) -> Job:
        """Wait until the job has ended, and return it."""
        async with asyncio.timeout(within_s):
            while not (job := await self.job(job_id)).has_ended:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.05)
        return job
