from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from sqlalchemy import text

from app.storage.database import Database, connect_database
from app.storage.shared_slots import SharedSemaphore, SharedSlots

pytestmark = pytest.mark.postgres


class Crowd:
    """Work of several processes at the same places, and how much of it there was at once."""

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
    """Three processes with a connection of their own each; leases run out after a second."""
    async with AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(connect_database(database_url)) for _ in range(3)]
        slots = [SharedSlots(database, ttl_s=1.0) for database in databases]
        for each in slots:
            stack.push_async_callback(each.aclose)
        yield slots


async def rows(database: Database) -> int:
    async with database.begin() as connection:
        return int((await connection.execute(text("SELECT count(*) FROM shared_slots"))).scalar_one())


async def test_all_processes_together_keep_to_the_limit_and_each_gets_its_work_done(processes: list[SharedSlots]):
    crowd = Crowd()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for nth, slots in enumerate(processes):
            for _ in range(40):
                group.create_task(crowd.visit(slots.places("llm", 5), str(nth)))
    assert len(crowd.done) == 120
    assert 2 <= crowd.most <= 5
    # None of them had to wait until the others had finished.
    assert {crowd.done.index(str(nth)) < 100 for nth in range(3)} == {True}


async def test_one_process_alone_uses_all_places(processes: list[SharedSlots]):
    crowd = Crowd()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for _ in range(40):
            group.create_task(crowd.visit(processes[0].places("llm", 8), "it"))
    assert crowd.most == 8


async def test_places_are_told_apart_by_name(processes: list[SharedSlots]):
    async with processes[0].places("host a", 1, linger_s=0), processes[1].places("host b", 1, linger_s=0):
        pass


async def test_places_of_hosts_are_given_back_at_once(processes: list[SharedSlots]):
    for slots in processes:
        async with asyncio.timeout(120), slots.places("host", 1, linger_s=0):
            pass
    async with asyncio.timeout(120):
        while await rows(processes[0].database):  # noqa: ASYNC110 - the state is in the database
            await asyncio.sleep(0.02)


@asynccontextmanager
async def frozen(slots: SharedSlots, name: str) -> AsyncIterator[None]:
    """A process that holds every place and then neither renews nor gives back, as if it were asleep."""
    places = slots.places(name, 2)
    async with places, places:
        keeper = places._keeper
        assert keeper is not None
        keeper.cancel()
        await asyncio.wait({keeper})
        yield


async def test_places_of_a_process_that_is_gone_come_free_by_themselves(processes: list[SharedSlots]):
    async with frozen(processes[0], "llm"), asyncio.timeout(120), processes[1].places("llm", 2):
        pass


async def test_who_wakes_up_after_its_lease_has_no_places_left(processes: list[SharedSlots]):
    crowd = Crowd()
    async with frozen(processes[0], "llm"):
        await asyncio.sleep(1.1)
        others = processes[1].places("llm", 2)
        async with asyncio.timeout(120), others, others:
            late = asyncio.create_task(crowd.visit(processes[0].places("llm", 2), "late"))
            await asyncio.sleep(0.5)
            assert crowd.done == []
    async with asyncio.timeout(120):
        await late


async def test_a_cancelled_wait_leaves_nothing_behind(processes: list[SharedSlots]):
    places = processes[0].places("llm", 1)
    async with asyncio.timeout(120), places:
        waiting = asyncio.create_task(Crowd().visit(places, "it"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait({waiting})
    async with asyncio.timeout(120), places:
        pass
