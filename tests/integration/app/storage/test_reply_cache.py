"""Reply cache in the database. Its failures never affect a verdict."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text

from app.storage.database import Database, connect_database
from app.storage.reply_cache import (
    DatabaseReplyCache,
    Event,
    cache_size,
)
from judges.llm.client import LLMReply, StoredReply
from rubrics.verdict import Usage

pytestmark = pytest.mark.postgres

MIB = 1024**2
KEY, OTHER = "ab" * 32, "cd" * 32


def reply(said: str = "{}", model: str = "m") -> LLMReply:
    return LLMReply(text=said, parsed=None, model=model, usage=Usage(calls=1))


class Process:
    """Cache of one worker, with the events it reported."""

    def __init__(self, database: Database, *, max_bytes: int = MIB, read_timeout_s: float = 60.0) -> None:
        self.database = database
        self.replies = DatabaseReplyCache(
            database, max_bytes=max_bytes, read_timeout_s=read_timeout_s, unavailable_s=240.0
        )
        self.events: Counter[str] = Counter()
        self.lookups = 0
        self.replies.on_event = self._count_event

    def _count_event(self, event: Event, count: int) -> None:
        self.events[event] += count
        self.lookups += event in ("missing", "failed")

    async def wait_for_event(self, event: Event, count: int = 1) -> None:
        async with asyncio.timeout(240):
            while self.events[event] < count:  # noqa: ASYNC110 - counted by a callback
                await asyncio.sleep(0.01)


@pytest.fixture
async def two_workers(database_url: str) -> AsyncIterator[tuple[Process, Process]]:
    """Two workers with separate database connections."""
    async with AsyncExitStack() as stack:
        first, second = [Process(await stack.enter_async_context(connect_database(database_url))) for _ in range(2)]
        for process in (first, second):
            await stack.enter_async_context(process.replies.running())
        yield first, second


async def change(database: Database, statement: str) -> None:
    async with database.begin() as connection:
        await connection.execute(text(statement))


@pytest.mark.parametrize("said", ["\u20ac \U0001f600 \x00 \ud800"])
async def test_other_worker_finds_the_exact_reply(two_workers: tuple[Process, Process], said: str):
    first, second = two_workers
    assert await second.replies.get(KEY) is None
    await first.replies.put(KEY, reply(said))
    await first.wait_for_event("stored")
    assert await second.replies.get(KEY) == StoredReply(text=said, model="m")
    assert await second.replies.get(OTHER) is None


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE llm_cache SET entry = replace(entry, 'yes', 'no')",
        "UPDATE llm_cache SET entry = replace(entry, '\"version\": 1', '\"version\": 2')",
    ],
)
async def test_damaged_entry_is_ignored_and_replaced(two_workers: tuple[Process, Process], damage: str):
    first, second = two_workers
    await first.replies.put(KEY, reply("yes"))
    await first.wait_for_event("stored")
    await change(first.database, damage)
    assert await second.replies.get(KEY) is None
    assert second.events["damaged"] == 1
    await second.replies.put(KEY, reply("yes"))
    await second.wait_for_event("stored")
    assert await first.replies.get(KEY) == StoredReply(text="yes", model="m")


async def test_least_recently_used_entries_are_evicted(database: Database):
    process = Process(database, max_bytes=100_000)
    async with process.replies.running():
        for batch in range(3):
            for number in range(20):
                await process.replies.put(f"{batch * 20 + number:064x}", reply("x" * 2_000))
            await process.wait_for_event("stored", 20 * (batch + 1))
        async with asyncio.timeout(240), database.begin() as connection:
            while (await cache_size(connection)).bytes > 100_000:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.02)
        assert await process.replies.get(f"{59:064x}") is not None
        assert await process.replies.get(f"{0:064x}") is None


async def test_hanging_database_is_a_cache_miss(database_url: str, database: Database):
    async with connect_database(database_url) as other, database.begin() as connection:
        first = Process(other, read_timeout_s=1.0)
        await connection.execute(text("LOCK TABLE llm_cache"))
        async with asyncio.timeout(240):
            found = await asyncio.gather(*(first.replies.get(f"{number:064x}") for number in range(50)))
    assert found == [None] * 50
    assert first.events["failed"] == 1


async def test_pending_writes_are_flushed_and_lookups_end_at_shutdown(
    two_workers: tuple[Process, Process], database: Database
):
    ending = Process(database)
    async with ending.replies.running():
        waiting = asyncio.create_task(ending.replies.get(OTHER))
        await asyncio.sleep(0)
        await ending.replies.put(KEY, reply())
    async with asyncio.timeout(240):
        assert await waiting is None
        assert await ending.replies.get(OTHER) is None
    assert await two_workers[0].replies.get(KEY) is not None
