"""A result of ten thousand leaves: CPU time of its views, open claims in parts, and scrolling."""

from __future__ import annotations

import csv
import io
import sys
import threading
import time

import httpx
import pytest
import pytest_asyncio
from patchright.async_api import Browser

from app.dashboard import result_cache
from app.dashboard.results import PER_PAGE, SECTION
from rubrics.node import RubricNode
from tests.browser.dashboard.conftest import Served, open_reader
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

LEAVES = 4_000
OPEN = LEAVES // 5
OUTCOMES = (PASSED, FAILED, NOT_JUDGED, PASSED, PASSED)
STEPS, STEP_PX = 120, 90
"""Scrolls the tree by one step per frame, and returns the milliseconds between frames."""


def claim(number: int) -> RubricNode:
    text = (
        f"Ferry {number} leaves Sund Quay at {number % 24}:15 on Saturday and arrives in Karrow Bay before the evening"
    )
    reasoning = "The timetable has this ferry in its second line, with the time of the claim and the day of the week. "
    sources = [f"https://ferries.example/{number % 40}"]
    return leaf(f"claim{number}", OUTCOMES[number % 5], claim=text, sources=sources, reasoning=2 * reasoning)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def large(served: Served) -> str:
    text = served.judging.register("large", lambda: rubric_of(*map(claim, range(LEAVES)), task_id="bridges"))
    return await served.result("large", text, task="bridges")


async def views(http: httpx.AsyncClient, path: str, name: str) -> httpx.Response:
    """Return the page. Print the CPU time of server and client; it is not asserted, because machines differ."""
    start = time.process_time()
    response = await http.get(path, timeout=120)
    print(f"{name}: {1000 * (time.process_time() - start):.0f} ms of CPU time", file=sys.stderr)
    assert response.status_code == 200
    return response


async def test_views_have_a_bounded_size(served: Served, large: str, monkeypatch: pytest.MonkeyPatch):
    small = await served.result(
        "small", served.judging.register("small", lambda: rubric_of(claim(1), task_id="bridges"))
    )
    await views(served.http, f"/results/{small}", "small result, which loads the templates")
    first = await views(served.http, f"/results/{large}", "first view")
    later = await views(served.http, f"/results/{large}", "later view")
    assert len(first.content) == len(later.content) < 200_000
    assert first.text.count('class="node leaf') == SECTION
    part = await views(served.http, f"/results/{large}/open", "open claims")
    assert part.text.count("<tr") == 1 + PER_PAGE
    # A later view does not read the stored JSON again.
    parsed: list[str] = []
    monkeypatch.setattr(result_cache, "tree_of", parsed.append)
    await views(served.http, f"/results/{large}", "later view")
    assert parsed == []


async def test_menu_is_sent_before_the_result_is_parsed(served: Served, monkeypatch: pytest.MonkeyPatch):
    text = served.judging.register("unseen", lambda: rubric_of(claim(1), task_id="bridges"))
    path = f"/results/{await served.result('unseen', text, task='bridges')}"
    may_parse, parse = threading.Event(), result_cache._parse

    def parse_when_allowed(response: httpx.Response) -> result_cache.CachedResult:
        assert may_parse.wait(60)
        return parse(response)

    monkeypatch.setattr(result_cache, "_parse", parse_when_allowed)
    async with served.http.stream("GET", path, timeout=60) as page:
        parts = page.aiter_text()
        head = await anext(parts)
        assert page.status_code == 200
        assert "<title>unseen · bridges · assay</title>" in head and head.endswith("</header>\n  ")
        may_parse.set()
        rest = "".join([part async for part in parts])
    assert rest.startswith("<main ") and "Ferry 1 leaves" in rest and rest.endswith("</html>")
    # What does not exist has its status, also if the result does.
    for missing in ("/results/res_0", f"{path}?leaf=nothing"):
        assert (await served.http.get(missing)).status_code == 404


async def test_open_claims_are_shown_in_parts(served: Served, large: str, chromium: Browser):
    async with open_reader(chromium, served.url) as reader:
        await reader.go(f"/results/{large}")
        await reader.page.click(".open-leaves > summary")
        rows = reader.page.locator(".open-table tbody tr")
        await rows.first.wait_for()
        assert await rows.count() == PER_PAGE
        first = await rows.first.inner_text()
        assert f"1 to {PER_PAGE} of {OPEN:,}" in await reader.text(".open-table .more")
        await reader.page.click(".open-table .more a:text('Next')")
        await reader.page.wait_for_selector(f".open-table .more :text('{PER_PAGE + 1} to {2 * PER_PAGE}')")
        assert await rows.count() == PER_PAGE and await rows.first.inner_text() != first
        assert await reader.violations() == []
        await reader.page.click(".open-table .more a:text('Previous')")
        await reader.page.wait_for_selector(f".open-table .more :text('1 to {PER_PAGE} of')")
        assert await rows.first.inner_text() == first
        assert reader.page_errors == []
    table = await served.http.get(f"/results/{large}?format=csv&table=open")
    assert len(list(csv.reader(io.StringIO(table.text)))) == 1 + OPEN
