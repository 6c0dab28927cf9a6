"""Service with cited pages, some of which need work, and a browser that shows the pages panels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import OpenDashboard, Reader, Served, open_reader
from tests.fakes.judged import NOT_JUDGED, leaf, page_entry, rubric_of

PAGE_TEXT = "The tower is 41 metres high. It was built in 1612 by the town of Vellmar, and stands to this day."
MANY, FEW, FINE, RIGHT = (f"https://{name}.example/" for name in ("many", "few", "fine", "right"))
_numbers = count(1)


async def judge_answer_with_citations(
    served: Served, leaves: dict[str, int], *, blocked: tuple[str, ...], task: str = "towers"
) -> str:
    """Judge an answer whose leaves cite pages, some behind a login form; return the id of its job."""
    served.capturer.blocked.update(blocked)
    pages = []
    for url in leaves:
        page = await served.capture(url, PAGE_TEXT, title="Sign in" if url in blocked else "A tower")
        pages.append(page_entry(url, page_id=page, outcome="login_wall" if url in blocked else "ok"))

    def rubric():
        found = [
            leaf(f"{nth}-{url[8:12]}", NOT_JUDGED, claim="It is high", sources=[url], votes=(None,))
            for url, number in leaves.items()
            for nth in range(number)
        ]
        return rubric_of(*found, leaf("other"), task_id=task)

    said = f"It is high [many]({MANY}). And few say so, see [few]({FEW}). Number {next(_numbers)}."
    text = served.judging.register(said, rubric, pages=pages)
    job = await served.submit("keeper", text, task=task, name=f"answer_{next(_numbers)}")
    await served.wait_for_job(job)
    return job


@pytest_asyncio.fixture(loop_scope="session", name="shop")
async def open_shop(open_dashboard: OpenDashboard, chromium: Browser) -> AsyncIterator[tuple[Served, Reader, str]]:
    """Service with three cited pages, and a browser that shows its pages panels."""
    async with open_dashboard() as served:
        served.capturer.texts[RIGHT] = PAGE_TEXT.replace("41", "43")
        job = await judge_answer_with_citations(served, {FEW: 1, MANY: 3, FINE: 2}, blocked=(FEW, MANY))
        del served.capturer.texts[FEW]  # a new capture of it fails again; the other captures succeed
        async with open_reader(chromium, served.url) as reader:
            yield served, reader, job


async def listed_rows(reader: Reader) -> list[str]:
    return [" ".join(row.split()) for row in await reader.page.locator(".cited").all_inner_texts()]


async def selected_url(reader: Reader) -> str:
    return str(await reader.page.locator(".preview-body").get_attribute("data-url"))


async def wait_for_preview(reader: Reader, url: str) -> None:
    await reader.page.wait_for_selector(f'.preview-body[data-url="{url}"]')


async def wait_for_message(reader: Reader, words: str) -> None:
    await reader.page.wait_for_selector(f'#pages-message:has-text("{words}")')


async def page_state(served: Served, url: str) -> dict[str, Any]:
    [found] = (await served.http.get("/v1/pages/urls", params={"url": url})).json()["items"]
    return dict(found)


async def press_keys(reader: Reader, *keys: str) -> None:
    for key in keys:
        await reader.page.keyboard.press(key)
