from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from sqlalchemy import text

from app.storage.database import Database, connect_database
from app.storage.shared_state import SharedSemaphore, SharedSlots

pytestmark = pytest.mark.postgres


class ConcurrencyCounter:
    """Concurrent work of several processes in the same slots, with its maximum concurrency."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.done: list[str] = []

    async def visit(self, places: SharedSemaphore, who: str, *, seconds: float = 0.02) -> None:
        async with places:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            self.now -= 1
        self.done.append(who)


@pytest.fixture
async def processes(database_url: str) -> AsyncIterator[list[SharedSlots]]:
    """Three processes with separate connections. Leases do not expire while a process is suspended for seconds."""
    async with AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(connect_database(database_url)) for _ in range(3)]
        slots = [SharedSlots(database, ttl_s=240.0) for database in databases]
        for slot in slots:
            stack.push_async_callback(slot.aclose)
        yield slots


async def test_processes_share_the_limit_fairly(processes: list[SharedSlots]):
    counter = ConcurrencyCounter()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        for nth, slots in enumerate(processes):
            for _ in range(15):
                group.create_task(counter.visit(slots.semaphore("llm", 5), str(nth)))
    assert len(counter.done) == 45
    assert 2 <= counter.most <= 5
    # No process waited until the others had finished.
    assert {counter.done.index(str(nth)) < 40 for nth in range(3)} == {True}


@asynccontextmanager
async def stalled_process(database: Database, name: str) -> AsyncIterator[SharedSlots]:
    """Hold every slot without renewing or releasing it, like a stalled process. The lease expires after a second."""
    slots = SharedSlots(database, ttl_s=1.0)
    places = slots.semaphore(name, 2)
    async with places, places:
        keeper = places._lease_task
        assert keeper is not None
        keeper.cancel()
        await asyncio.wait({keeper})
        yield slots
    await slots.aclose()


async def requested(database: Database, holder: str, slots: int) -> None:
    """Wait until a process has requested a number of slots."""
    query = text("SELECT wanted FROM shared_slots WHERE name = 'llm' AND holder = :holder")
    async with asyncio.timeout(240):
        while True:
            async with database.begin() as connection:
                if (await connection.execute(query, {"holder": holder})).scalar() == slots:
                    return
            await asyncio.sleep(0.02)


async def test_stalled_process_loses_its_slots(processes: list[SharedSlots]):
    counter = ConcurrencyCounter()
    async with stalled_process(processes[0].database, "llm") as stalled:
        others = processes[1].semaphore("llm", 2)
        async with asyncio.timeout(240), others, others:
            late = asyncio.create_task(counter.visit(stalled.semaphore("llm", 2), "late"))
            await requested(processes[1].database, stalled.holder, 3)  # the two that it lost, and the late one
            assert counter.done == []
    async with asyncio.timeout(240):
        await late


async def test_cancelled_wait_releases_its_slot(processes: list[SharedSlots]):
    places = processes[0].semaphore("llm", 1)
    async with asyncio.timeout(240), places:
        waiting = asyncio.create_task(ConcurrencyCounter().visit(places, "it"))
        await requested(processes[0].database, processes[0].holder, 2)
        waiting.cancel()
        await asyncio.wait({waiting})
    async with asyncio.timeout(240), places:
        pass
