from __future__ import annotations

from app.engine.limits import Limits
from tests.fakes.settings import settings_for_tests


async def free(semaphore) -> int:
    taken = 0
    while not semaphore.locked():
        await semaphore.acquire()
        taken += 1
    return taken


async def test_each_limit_has_the_value_of_its_setting():
    limits = Limits.from_settings(settings_for_tests(max_tasks=1, max_answers=2, max_pages=3, max_llm=4))
    assert [await free(one) for one in (limits.tasks, limits.answers(), limits.pages, limits.llm)] == [1, 2, 3, 4]


async def test_answers_of_two_tasks_have_separate_limits():
    limits = Limits.from_settings(settings_for_tests(max_answers=1))
    await limits.answers().acquire()
    assert await free(limits.answers()) == 1
