from __future__ import annotations

import asyncio

from app.engine.model_clients import Limits
from cache.pacing import FairLimit
from tests.fakes.settings import settings_for_tests


async def available_slots(semaphore) -> int:
    """Return how many of ten tasks get a slot, none of which gives it back."""
    acquired = 0

    async def take() -> None:
        nonlocal acquired
        async with semaphore.slot(object()) if isinstance(semaphore, FairLimit) else semaphore:
            acquired += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(take()) for _ in range(10)]
    for _ in range(5):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return acquired


async def test_each_limit_has_the_value_of_its_setting():
    limits = Limits.from_settings(settings_for_tests(max_tasks=1, max_answers=2, max_pages=3, max_llm=4))
    assert [await available_slots(one) for one in (limits.tasks, limits.answers(), limits.pages, limits.llm)] == [
        1,
        2,
        3,
        4,
    ]
