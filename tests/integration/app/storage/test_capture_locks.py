"""Capture locks across processes on one database: one process captures, and the others reuse the capture."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from app.storage.captures import PostgresCaptureIndex, PostgresCaptureLocks, PostgresHostPacing
from app.storage.database import Database, connect_database
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Observation
from cache.pages import PageCache

pytestmark = pytest.mark.postgres

URL = "https://towns.example/benches"


class CountingCapturer:
    """Capturer with a delay that counts its captures."""

    def __init__(self, takes_s: float = 0.02, gate: asyncio.Event | None = None) -> None:
        self.takes_s = takes_s
        self.gate = gate
        self.count = 0
        self.has_begun = asyncio.Event()

    async def capture(self, url: str) -> Observation:
        self.count += 1
        self.has_begun.set()
        await asyncio.sleep(self.takes_s)
        if self.gate is not None:
            await self.gate.wait()
        now = datetime.now(UTC)
        return Observation(
            url=url,
            outcome=CaptureOutcome.OK,
            captured_at=now,
            duration_s=0.0,
            backend="test",
            text=f"Benches of {url}",
        )

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


@asynccontextmanager
async def worker(
    url: str, folder: Path, capturer: CountingCapturer, *, ttl_s: float = 240.0
) -> AsyncIterator[PageCache]:
    """Yield the page cache of one process: separate connections, shared database and store."""
    async with connect_database(url) as database:
        turns = PostgresCaptureLocks(database, ttl_s=ttl_s)
        yield PageCache(capturer, BlobStore.open(folder.as_uri()), PostgresCaptureIndex(database), locks=turns)


async def test_f18_races_of_two_workers_capture_once_each(database_url: str, tmp_path: Path) -> None:
    capturers = CountingCapturer(0.005), CountingCapturer(0.005)
    async with worker(database_url, tmp_path, capturers[0]) as one, worker(database_url, tmp_path, capturers[1]) as two:

        async def race(nth: int) -> None:
            workers = (one, two) if nth % 2 else (two, one)
            first, second = await asyncio.gather(*(each.get(f"{URL}?nth={nth}") for each in workers))
            assert first.id == second.id

        await asyncio.gather(*(race(nth) for nth in range(20)))
    assert sum(capturer.count for capturer in capturers) == 20


async def test_refresh_joins_running_refresh_of_other_worker(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_waiting, try_acquire = asyncio.Event(), PostgresCaptureLocks._try_acquire

    async def observed_try(self: PostgresCaptureLocks, hashed: str, holder: str) -> bool:
        is_acquired = await try_acquire(self, hashed, holder)
        if not is_acquired:
            is_waiting.set()
        return is_acquired

    monkeypatch.setattr(PostgresCaptureLocks, "_try_acquire", observed_try)
    gate = asyncio.Event()
    capturers = CountingCapturer(), CountingCapturer(gate=gate)
    async with worker(database_url, tmp_path, capturers[0]) as one, worker(database_url, tmp_path, capturers[1]) as two:
        before = await one.get(URL)
        running = asyncio.create_task(two.get(URL, refresh=True))
        await capturers[1].has_begun.wait()
        joining = asyncio.create_task(one.get(URL, refresh=True))
        await is_waiting.wait()
        gate.set()
        assert (await joining).id == (await running).id != before.id
    assert (capturers[0].count, capturers[1].count) == (1, 1)


PROCESS = """
import asyncio, sys
from pathlib import Path
from tests.integration.app.storage.test_capture_locks import URL, CountingCapturer, worker

async def main(database, folder, takes_s, ttl_s):
    capturer = CountingCapturer(float(takes_s))
    async with worker(database, Path(folder), capturer, ttl_s=float(ttl_s)) as pages:
        print("ready", flush=True)
        sys.stdin.readline()
        capture = await pages.get(URL)
        print("ended", capture.id, capturer.count, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def processes(*arguments: tuple[str, str, str, str]) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Start worker processes that begin when they read a line."""
    pipe = asyncio.subprocess.PIPE
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", PROCESS, *argument, stdin=pipe, stdout=pipe)
        for argument in arguments
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), 240) == b"ready\n"
        yield started
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def start_capture(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    await process.stdin.drain()


async def wait_for_end(process: asyncio.subprocess.Process) -> tuple[str, int]:
    assert process.stdout is not None
    async with asyncio.timeout(240):
        while not (line := await process.stdout.readline()).startswith(b"ended"):
            assert line, "the process ended early"  # other lines are log output
    _, capture_id, count = line.split()
    return capture_id.decode(), int(count)


async def is_free(database: Database) -> bool:
    """Return whether no process holds a lock."""
    async with database.begin() as connection:
        held = await connection.execute(text("SELECT 1 FROM capture_locks WHERE expires_at >= clock_timestamp()"))
    return held.first() is None


async def test_lock_of_killed_process_expires(database: Database, database_url: str, tmp_path: Path) -> None:
    shared = database_url, str(tmp_path)
    async with processes((*shared, "3600", "3"), (*shared, "0", "3")) as (holder, waiter):
        await start_capture(holder)
        async with asyncio.timeout(240):
            while await is_free(database):  # noqa: ASYNC110 - the turn is taken in another process
                await asyncio.sleep(0.02)
        os.kill(holder.pid, signal.SIGKILL)
        await start_capture(waiter)
        _, count = await wait_for_end(waiter)
    assert count == 1


async def test_lock_is_released_after_error_or_cancellation(database: Database) -> None:
    turns = PostgresCaptureLocks(database)
    with pytest.raises(ZeroDivisionError):
        async with turns.lock("k"):
            raise ZeroDivisionError

    async def held() -> None:
        async with turns.lock("k"):
            await asyncio.Event().wait()

    holder = asyncio.create_task(held())
    while await is_free(database):  # noqa: ASYNC110 - the row is in the database
        await asyncio.sleep(0.01)
    holder.cancel()
    await asyncio.wait([holder])
    assert await is_free(database)


async def test_host_pacing_applies_across_workers(database_url: str) -> None:
    async with connect_database(database_url) as one, connect_database(database_url) as two:
        paces = PostgresHostPacing(one), PostgresHostPacing(two)
        began = time.monotonic()
        waited_s: list[float] = []

        async def visit(nth: int) -> None:
            await paces[nth % 2].wait("a.com", 0.3)
            waited_s.append(time.monotonic() - began)

        await asyncio.gather(*(visit(nth) for nth in range(6)))
        began = time.monotonic()
        await paces[0].wait("b.com", 30.0)
        other_host_s = time.monotonic() - began
    # A busy machine may wake a visit late, so only the earliest allowed times are checked.
    early = [(nth, s) for nth, s in enumerate(sorted(waited_s)) if s < nth * 0.3 - 0.05]
    assert not early, json.dumps(sorted(waited_s))
    assert other_host_s < 30.0
