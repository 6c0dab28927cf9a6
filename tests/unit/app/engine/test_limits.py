from __future__ import annotations

from app.engine.limits import Limits
from tests.fakes.settings import settings_for_tests


async def available_slots(semaphore) -> int:
    acquired = 0
    while not semaphore.locked():
        await semaphore.acquire()
        acquired += 1
    return acquired


async def test_each_limit_has_the_value_of_its_setting():
    limits = Limits.from_settings(settings_for_tests(max_tasks=1, max_answers=2, max_pages=3, max_llm=4))
    assert [await available_slots(one) for one in (limits.tasks, limits.answers(), limits.pages, limits.llm)] == [
        1,
        2,
        3,
        4,
    ]


async def test_answers_of_two_tasks_have_separate_limits():
    limits = Limits.from_settings(settings_for_tests(max_answers=1))
    await limits.answers().acquire()
    assert await available_slots(limits.answers()) == 1
