"""Processes killed, or put to sleep, at a named moment. The matrix of faults has their numbers (F1 to F7, F17)."""

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
from tests.faults.nursery import Nursery
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(240)]

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
READS = """
from pydantic import BaseModel

from judges.registry import judge

class Said(BaseModel):
    name: str | None = None

@judge(task="extracted", description="Things that are read first.")
async def extracted(ctx):
    await ctx.extract(Said, "Read the name.")
    ctx.verify("holds", "It holds")
"""
WORKER = {"heartbeat_s": 0.2, "stalled_s": 1.5, "reply_cache_bytes": 0, "max_llm": 1}
_SOON_S = 90.0
"""Nothing here takes long, but a busy machine may."""


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery") / "workers.log") as nursery:
        yield nursery


@dataclass
class Stage:
    """A database, a model whose replies can be held back, and workers that can be hit."""

    database: Database
    rig: Rig
    model: StandInLLM
    nursery: Nursery
    folder: Path
    holds: Callable[[Call], bool] = lambda call: False
    pids: list[int] = field(default_factory=list)

    def fault(self, call: Call) -> Fault | None:
        return Fault(delay_s=600.0) if self.holds(call) else None

    def settings(self) -> dict[str, Any]:
        return WORKER | {
            "data_dir": str(self.folder),
            "database_url": self.database.url,
            "model": "openai/gpt-6-luna",
            "openai_base_url": self.model.base_url,
        }

    async def start(self, **order: Any) -> int:
        folders = {"judges": str(self.folder / "judges"), "kept": str(self.folder / "kept")}
        pid = await asyncio.to_thread(self.nursery.start, settings=self.settings(), pages=PAGES, **folders, **order)
        self.pids.append(pid)
        return pid

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_SOON_S):
            while not holds():  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)

    async def count(self, query: str) -> int:
        async with self.database.begin() as connection:
            return int((await connection.execute(text(query))).scalar_one())

    async def reaches(self, query: str, number: int) -> None:
        async with asyncio.timeout(_SOON_S):
            while await self.count(query) < number:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.02)

    async def execute(self, statement: str) -> None:
        async with self.database.begin() as connection:
            await connection.execute(text(statement))

    async def done(self, job_id: str) -> Job:
        job = await self.rig.ended(job_id, within_s=_SOON_S)
        assert job.status is JobStatus.SUCCEEDED, job.error
        assert await self.count("SELECT count(*) FROM results") == 1
        return job


@pytest.fixture
async def stage(database: Database, rig: Rig, nursery: Nursery, tmp_path: Path) -> AsyncIterator[Stage]:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "things.py").write_text(JUDGE)
    (tmp_path / "judges" / "extracted.py").write_text(READS)
    async with StandInLLM() as model:
        stage = Stage(database, rig, model, nursery, tmp_path)
        model.fault_for = stage.fault
        yield stage
        for pid in stage.pids:
            hit(pid, signal.SIGKILL)


def hit(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):  # it may be gone, or be gone by now
        os.kill(pid, number)


async def test_f5_killed_while_judging_only_what_was_not_yet_answered_is_asked(stage: Stage):
    stage.holds = lambda call: call.index == 6  # 3 of 10 claims are done, the next call is under way
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.until(lambda: len(stage.model.calls) == 7)
    await stage.reaches("SELECT count(*) FROM checkpoints", 6)
    hit(first)
    stage.holds = lambda call: False
    await stage.start()
    job = await stage.done(job_id)
    assert job.attempts == 2
    assert len(stage.model.calls) - 7 == CALLS - 6
    assert await usage_of(stage) == (CALLS, 0)
    assert await stage.count("SELECT count(*) FROM checkpoints") == 0


async def usage_of(stage: Stage) -> tuple[int, int]:
    usage = "SELECT (body::jsonb #>> '{usage,%s}')::int FROM results"
    return await stage.count(usage % "calls"), await stage.count(usage % "cached_calls")


async def test_f2_killed_after_extraction_the_answer_is_not_read_again(stage: Stage):
    stage.holds = lambda call: call.index == 1
    [job_id] = await stage.rig.submit("An answer.", task_id="extracted")
    first = await stage.start()
    await stage.until(lambda: len(stage.model.calls) == 2)
    hit(first)
    stage.holds = lambda call: False
    await stage.start()
    await stage.done(job_id)
    assert [call.schema_name for call in stage.model.calls].count("Said") == 1


@pytest.mark.parametrize("moment", ["BEFORE", "AFTER"])
async def test_f6_f7_killed_while_the_result_is_written_the_same_result_comes_without_a_call(stage: Stage, moment: str):
    await stage.execute(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'"
    )
    await stage.execute(f"CREATE TRIGGER hold {moment} INSERT ON results FOR EACH ROW EXECUTE FUNCTION hold()")
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.reaches("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", 1)
    hit(first)
    # A server notices that its client is gone when it next has something to say to it.
    await stage.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    await stage.execute("DROP TRIGGER hold ON results")
    assert await stage.count("SELECT count(*) FROM results") == 0
    await stage.start()
    await stage.done(job_id)
    assert len(stage.model.calls) == CALLS
    assert await usage_of(stage) == (CALLS, 0)


async def test_f4_killed_between_a_pages_bodies_and_its_row_nothing_dangles(stage: Stage):
    [job_id] = await stage.rig.submit(f"An answer with [a page]({URL}).", task_id=TASK)
    first = await stage.start(dies_before_rows=True)
    await stage.until(lambda: not psutil.pid_exists(first))
    assert await stage.count("SELECT count(*) FROM captures") == 0
    await stage.start()
    await stage.done(job_id)
    assert await stage.count("SELECT count(*) FROM captures") == 1
    assert not [path for path in (stage.folder / "kept").rglob("*") if path.name.startswith((".", "tmp"))]


async def test_f17_asleep_past_its_lease_a_worker_finds_its_job_done_and_changes_nothing(stage: Stage):
    stage.holds = lambda call: call.index == 2
    [job_id] = await stage.rig.submit("An answer.", task_id=TASK)
    first = await stage.start()
    await stage.until(lambda: len(stage.model.calls) == 3)
    hit(first, signal.SIGSTOP)
    stage.holds = lambda call: False
    await stage.start()
    job = await stage.done(job_id)
    calls = len(stage.model.calls)
    hit(first, signal.SIGCONT)
    await asyncio.sleep(3.0)
    again = await stage.rig.job(job_id)
    assert psutil.pid_exists(first)
    assert (again.result_id, again.attempts, again.revision) == (job.result_id, 2, job.revision)
    assert await stage.count("SELECT count(*) FROM results") == 1
    assert len(stage.model.calls) <= calls + 2  # what it wanted to ask next, before it looked around


@pytest.mark.parametrize(("moment", "stored"), [("request", 0), ("response", 1)])
async def test_f1_killed_around_the_confirmation_the_same_request_leads_to_one_submission(
    stage: Stage, moment: str, stored: int
):
    body = {"agent": "a", "task_id": TASK, "answers": [{"name": "answer", "text": "An answer."}]}
    socket = str(stage.folder / "api.sock")

    async def post(*, dies_at: str | None) -> httpx.Response:
        pid = await stage.start(socket=socket, dies_at=dies_at)
        transport = httpx.AsyncHTTPTransport(uds=socket)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                async with asyncio.timeout(_SOON_S):
                    while True:
                        try:
                            await client.get("/healthz")
                            break
                        except httpx.TransportError:
                            await asyncio.sleep(0.05)
                headers = {"Idempotency-Key": "the same"}
                return await client.post("/v1/submissions", json=body, headers=headers, timeout=_SOON_S)
        finally:
            hit(pid)
            await stage.until(lambda: not psutil.pid_exists(pid))
            os.unlink(socket)  # noqa: PTH108 - a moment, and nothing else runs

    with pytest.raises(httpx.TransportError):
        await post(dies_at=moment)
    assert await stage.count("SELECT count(*) FROM submissions") == stored
    first = await post(dies_at=None)
    again = await post(dies_at=None)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert await stage.count("SELECT count(*) FROM submissions") == 1
    assert await stage.count("SELECT count(*) FROM jobs") == 1
