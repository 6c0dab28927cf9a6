"""What one worker was told, every worker on the database knows; and none of that is ever in the way of a verdict."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from app.maintenance.retention import prune
from app.storage.database import Database, connect_database
from app.storage.llm_cache import cache_size, cache_size_by_model, clear_cache
from app.storage.shared_llm_cache import MAX_WAITING, Event, SharedLLMCache
from cache.blobs import BlobStore
from judges.llm.client import LLMReply
from judges.llm.response_cache import StoredReply
from rubrics.verdict import Usage

pytestmark = pytest.mark.postgres

MIB = 1024**2
KEY, OTHER = "ab" * 32, "cd" * 32


def reply(said: str = "{}", model: str = "m") -> LLMReply:
    return LLMReply(text=said, parsed=None, model=model, usage=Usage(calls=1))


class Process:
    """One worker's part, and what it heard."""

    def __init__(self, database: Database, *, max_bytes: int = MIB) -> None:
        self.database = database
        self.replies = SharedLLMCache(database, max_bytes=max_bytes)
        self.heard: Counter[str] = Counter()
        self.looks = 0
        self.replies.told = self._told

    def _told(self, event: Event, count: int) -> None:
        self.heard[event] += count
        self.looks += event in ("missing", "failed")

    async def heard_of(self, event: Event, count: int = 1) -> None:
        async with asyncio.timeout(120):
            while self.heard[event] < count:  # noqa: ASYNC110 - told by a callback
                await asyncio.sleep(0.01)


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[tuple[Process, Process]]:
    """Two workers with connections of their own."""
    async with AsyncExitStack() as stack:
        first, second = [Process(await stack.enter_async_context(connect_database(database_url))) for _ in range(2)]
        for process in (first, second):
            await stack.enter_async_context(process.replies.running())
        yield first, second


async def change(database: Database, statement: str) -> None:
    async with database.begin() as connection:
        await connection.execute(text(statement))


@pytest.mark.parametrize("said", ["{}", "\u20ac \U0001f600 \x00 \ud800", "x" * 100_000])
async def test_what_one_is_told_the_other_knows_letter_by_letter(two: tuple[Process, Process], said: str):
    first, second = two
    assert await second.replies.get(KEY) is None
    first.replies.offer(KEY, reply(said))
    await first.heard_of("stored")
    assert await second.replies.get(KEY) == StoredReply(text=said, model="m")
    assert await second.replies.get(OTHER) is None


async def test_questions_that_come_together_share_a_query(two: tuple[Process, Process]):
    first, second = two
    for number in range(200):
        first.replies.offer(f"{number:064x}", reply(str(number)))
    await first.heard_of("stored", 200)
    found = await asyncio.gather(*(second.replies.get(f"{number % 210:064x}") for number in range(420)))
    assert [each and each.text for each in found] == [
        str(number % 210) if number % 210 < 200 else None for number in range(420)
    ]
    assert second.looks <= 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE llm_cache SET entry = replace(entry, 'yes', 'no')",
        "UPDATE llm_cache SET entry = 'nothing of the kind'",
        "UPDATE llm_cache SET entry = '[]'",
        "UPDATE llm_cache SET entry = replace(entry, '\"version\": 1', '\"version\": 2')",
    ],
)
async def test_what_was_damaged_is_not_there_and_is_mended_by_the_next_reply(two: tuple[Process, Process], damage: str):
    first, second = two
    first.replies.offer(KEY, reply("yes"))
    await first.heard_of("stored")
    await change(first.database, damage)
    assert await second.replies.get(KEY) is None
    assert second.heard["damaged"] == 1
    second.replies.offer(KEY, reply("yes"))
    await second.heard_of("stored")
    assert await first.replies.get(KEY) == StoredReply(text="yes", model="m")


async def test_a_reply_under_the_key_of_another_request_is_none(two: tuple[Process, Process]):
    first, second = two
    first.replies.offer(KEY, reply())
    await first.heard_of("stored")
    await change(first.database, f"UPDATE llm_cache SET key = '{OTHER}'")
    assert await second.replies.get(OTHER) is None


async def test_the_least_recently_used_go_when_there_is_no_room(database: Database):
    process = Process(database, max_bytes=100_000)
    async with process.replies.running():
        for batch in range(3):
            for number in range(20):
                process.replies.offer(f"{batch * 20 + number:064x}", reply("x" * 2_000))
            await process.heard_of("stored", 20 * (batch + 1))
        async with asyncio.timeout(120), database.begin() as connection:
            while (await cache_size(connection)).bytes > 100_000:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.02)
        assert await process.replies.get(f"{59:064x}") is not None
        assert await process.replies.get(f"{0:064x}") is None


async def test_a_database_that_is_away_costs_nothing_but_the_reply(two: tuple[Process, Process]):
    first, _ = two
    await change(first.database, "ALTER TABLE llm_cache RENAME TO elsewhere")
    async with asyncio.timeout(120):
        assert await first.replies.get(KEY) is None
        assert await first.replies.get(KEY) is None
    assert first.heard["failed"] == 1, "it is left alone for a while"
    first.replies.offer(KEY, reply())
    await first.heard_of("lost")
    assert first.heard["stored"] == 0


async def test_a_database_that_hangs_is_not_waited_for(two: tuple[Process, Process], database: Database):
    first, _ = two
    async with database.begin() as connection:
        await connection.execute(text("LOCK TABLE llm_cache"))
        async with asyncio.timeout(120):
            found = await asyncio.gather(*(first.replies.get(f"{number:064x}") for number in range(50)))
    assert found == [None] * 50
    assert first.heard["failed"] == 1


async def test_more_than_can_wait_is_not_shared(database: Database):
    process = Process(database)
    for number in range(MAX_WAITING + 3):
        process.replies.offer(f"{number:064x}", reply())
    assert process.heard["lost"] == 3


async def test_what_waits_is_written_at_the_end_and_nobody_hangs(two: tuple[Process, Process], database: Database):
    ending = Process(database)
    async with ending.replies.running():
        waiting = asyncio.create_task(ending.replies.get(OTHER))
        await asyncio.sleep(0)
        ending.replies.offer(KEY, reply())
    async with asyncio.timeout(120):
        assert await waiting is None
        assert await ending.replies.get(OTHER) is None
    assert await two[0].replies.get(KEY) is not None


async def test_one_who_no_longer_waits_takes_nothing_from_the_others(two: tuple[Process, Process]):
    first, second = two
    first.replies.offer(KEY, reply())
    await first.heard_of("stored")
    tasks = [asyncio.create_task(second.replies.get(KEY)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert [await task for task in tasks[1:]] == [StoredReply(text="{}", model="m")] * 2


async def test_they_are_listed_cleared_and_pruned_by_model_and_last_use(two: tuple[Process, Process]):
    first, second = two
    for number, model in enumerate(("small", "small", "large", "large")):
        first.replies.offer(f"{number:064x}", reply(model=model))
    await first.heard_of("stored", 4)
    old, database, now = (
        "UPDATE llm_cache SET used_at = used_at - interval '40 days'",
        first.database,
        datetime.now(UTC),
    )
    await change(database, f"{old} WHERE key IN ('{0:064x}', '{2:064x}', '{3:064x}')")
    async with database.begin() as connection:
        listed = {
            each.model: (each.entries, each.newest - each.oldest > 86_400)
            for each in await cache_size_by_model(connection)
        }
        assert listed == {"small": (2, True), "large": (2, False)}
        before = now - timedelta(days=30)
        assert (await clear_cache(connection, model="small", used_before=before)).entries == 1
    await second.replies.get(f"{3:064x}")
    second.replies.offer(OTHER, reply())
    await second.heard_of("stored")
    blobs = BlobStore.open("memory://")
    rehearsed, done = [
        await prune(database, blobs, before=before, now=now, rehearse=rehearse) for rehearse in (True, False)
    ]
    assert (rehearsed.rows.replies, done.rows.replies) == (1, 1), "of two old ones one was used again"
    async with database.begin() as connection:
        assert (await clear_cache(connection)).entries == 3
        assert (await cache_size(connection)).entries == 0
