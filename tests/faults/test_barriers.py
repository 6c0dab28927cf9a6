"""Processes killed or stopped at a specific point. Numbers refer to the fault matrix (F1 to F7, F17)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import text

from app.storage.database import Database
from app.storage.records import Job, JobStatus
from tests.fakes.services import Rig
from tests.faults.fork_server import WorkerForkServer, worker_url
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(600)]

URL = "https://example.org/page"
PAGES = {URL: "Here it says what everybody should know about the things that are claimed."}
CLAIMS, VOTES = 10, 2
CALLS = CLAIMS * VOTES
TASK = "things"
JUDGE = f"""
from judges.registry import judge

@judge(task="things", description="Things.")
async def things(ctx):
    for number in range({CLAIMS}):
        ctx.verify(f"claim_{{number}}", f"Thing {{number}} holds", sources=[{URL!r}] if number == 0 else None)
"""
WORKER = {"stalled_s": 60.0, "reply_cache_bytes": 0, "max_llm": 1}
_WAIT_S = 240.0
"""Generous, because the machine may be busy."""


@pytest.fixture
def database_url(fresh_database_url: str) -> str:
    """Database of the test's own: some tests change its schema."""
    return fresh_database_url


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerForkServer]:
    with WorkerForkServer(tmp_path_factory.mktemp("nursery") / "workers.log") as fork_server:
        yield fork_server


@dataclass
class Stage:
    """Database, a model whose replies can be delayed, and workers that can be killed or stopped."""

    database: Database
    rig: Rig
    model: StandInLLM
    fork_server: WorkerForkServer
    folder: Path
    holds: Callable[[Call], bool] = lambda call: False
    pids: list[int] = field(default_factory=list)

    def fault(self, call: Call) -> Fault | None:
        return Fault(delay_s=600.0) if self.holds(call) else None

    def settings(self) -> dict[str, Any]:
        return WORKER | {
            "data_dir": str(self.folder),
            "database_url": worker_url(self.database),
            "model": "openai/gpt-6-luna",
            "openai_base_url": self.model.base_url,
        }

    async def start(self, **options: Any) -> int:
        folders = {"judges": str(self.folder / "judges"), "data_folder": str(self.folder / "kept")}
        pid = await asyncio.to_thread(
            self.fork_server.start, settings=self.settings(), pages=PAGES, **folders, **options
        )
        self.pids.append(pid)
        return pid

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_WAIT_S):
            while not holds():  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)

    async def count(self, query: str) -> int:
        async with self.database.begin() as connection:
            return int((await connection.execute(text(query))).scalar_one())

    async def reaches(self, query: str, number: int) -> None:
        async with asyncio.timeout(_WAIT_S):
            while await self.count(query) < number:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.02)

    async def execute(self, statement: str) -> None:
        async with self.database.begin() as connection:
            await connection.execute(text(statement))

    async def end_leases(self) -> None:
        """End the leases of all workers. They would end after a minute, so that a slow worker keeps its jobs."""
        await self.execute("DELETE FROM procrastinate_workers")

    async def done(self, job_id: str) -> Job:
        job = await self.rig.wait_for_job(job_id, within_s=_WAIT_S)
        assert job.status is JobStatus.SUCCEEDED, job.error
        assert await self.count("SELECT count(*) FROM results") == 1
        return job


@pytest.fixture
async def stage(database: Database, rig: Rig, fork_server: WorkerForkServer, tmp_path: Path) -> AsyncIterator[Stage]:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "things.py").write_text(JUDGE)
    async with StandInLLM() as model:
        stage = Stage(database, rig, model, fork_server, tmp_path)
        model.fault_for = stage.fault
        yield stage
        for pid in stage.pids:
            hit(pid, signal.SIGKILL)


def hit(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):  # it may have ended already
        os.kill(pid, number)


async def test_f5_after_a_kill_while_judging_only_unanswered_requests_are_sent(stage: Stage):
    stage.holds = lambda call: call.index == 6  # 3 of 10 claims are done, the next call is in progress
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.until(lambda: len(stage.model.calls) == 7)
    await stage.reaches("SELECT count(*) FROM checkpoints", 6)
    hit(first)
    await stage.end_leases()
    stage.holds = lambda call: False
    await stage.start()
    job = await stage.done(job_id)
    assert job.attempts >= 2
    assert len(stage.model.calls) - 7 == CALLS - 6
    assert await usage_of(stage) == (CALLS, 0)
    assert await stage.count("SELECT count(*) FROM checkpoints") == 0


async def usage_of(stage: Stage) -> tuple[int, int]:
    usage = "SELECT (body::jsonb #>> '{usage,%s}')::int FROM results"
    return await stage.count(usage % "calls"), await stage.count(usage % "cached_calls")


@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_f6_f7_after_a_kill_while_storing_the_result_no_call_is_repeated(stage: Stage, moment: str):
    await stage.execute(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'"
    )
    await stage.execute(f"CREATE TRIGGER hold {moment} INSERT ON results FOR EACH ROW EXECUTE FUNCTION hold()")
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.reaches("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", 1)
    hit(first)
    # PostgreSQL notices a lost client only when it sends the next message, so end its session.
    await stage.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    await stage.execute("DROP TRIGGER hold ON results")
    assert await stage.count("SELECT count(*) FROM results") == 0
    await stage.end_leases()
    await stage.start()
    await stage.done(job_id)
    assert len(stage.model.calls) == CALLS
    assert await usage_of(stage) == (CALLS, 0)


async def test_f4_kill_between_page_bodies_and_row_leaves_nothing_behind(stage: Stage):
    [job_id] = await stage.rig.submit(f"An answer with [a page]({URL}).", task_id=TASK)
    first = await stage.start(dies_before_rows=True)
    await stage.until(lambda: not psutil.pid_exists(first))
    assert await stage.count("SELECT count(*) FROM captures") == 0
    await stage.end_leases()
    await stage.start()
    await stage.done(job_id)
    assert await stage.count("SELECT count(*) FROM captures") == 1
    assert not [path for path in (stage.folder / "kept").rglob("*") if path.name.startswith((".", "tmp"))]


async def test_f17_worker_stopped_past_its_lease_changes_nothing(stage: Stage):
    stage.holds = lambda call: call.index == 2
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.until(lambda: len(stage.model.calls) == 3)
    hit(first, signal.SIGSTOP)
    await stage.end_leases()
    stage.holds = lambda call: False
    await stage.start()
    job = await stage.done(job_id)
    calls = len(stage.model.calls)
    hit(first, signal.SIGCONT)
    hit(first, signal.SIGTERM)
    await stage.until(lambda: not psutil.pid_exists(first))  # it has ended its work: nothing can change any more
    again = await stage.rig.job(job_id)
    assert (again.result_id, again.attempts, again.revision) == (job.result_id, job.attempts, job.revision)
    assert await stage.count("SELECT count(*) FROM results") == 1
    assert len(stage.model.calls) <= calls + 2  # requests that the worker sends before it notices the lost lease


@pytest.mark.parametrize(("moment", "stored"), [("request", 0), ("response", 1)])
async def test_f1_repeated_request_after_a_kill_creates_one_submission(stage: Stage, moment: str, stored: int):
    body = {"agent": "a", "task_id": TASK, "answers": [{"name": "answer", "text": "An answer."}]}
    socket = str(stage.folder / "api.sock")

    async def post(*, dies_at: str | None) -> httpx.Response:
        pid = await stage.start(socket=socket, dies_at=dies_at)
        transport = httpx.AsyncHTTPTransport(uds=socket)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                async with asyncio.timeout(_WAIT_S):
                    while True:
                        try:
                            await client.get("/healthz")
                            break
                        except httpx.TransportError:
                            await asyncio.sleep(0.05)
                headers = {"Idempotency-Key": "the same"}
                return await client.post("/v1/submissions", json=body, headers=headers, timeout=_WAIT_S)
        finally:
            hit(pid)
            await stage.until(lambda: not psutil.pid_exists(pid))
            os.unlink(socket)  # noqa: PTH108 - one short call, and no other task runs

    with pytest.raises(httpx.TransportError):
        await post(dies_at=moment)
    assert await stage.count("SELECT count(*) FROM submissions") == stored
    first = await post(dies_at=None)
    again = await post(dies_at=None)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert await stage.count("SELECT count(*) FROM submissions") == 1
    assert await stage.count("SELECT count(*) FROM jobs") == 1
