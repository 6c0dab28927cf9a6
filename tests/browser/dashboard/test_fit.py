"""Every screen in light and dark, at all widths, with keyboard and screen reader; and speed of large trees."""

from __future__ import annotations

import pytest
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import LAPTOP, PHONE, OpenDashboard, Reader, Served, open_reader
from tests.browser.dashboard.test_reading_results import judged
from tests.fakes.judged import leaf, many_leaves, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]

WIDTHS = (390, 600, 834, 1024, 1280, 1920)


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """Paths of all screens; the first test that needs them fills this."""
    return {}


async def screens(served: Served, known: dict[str, str]) -> dict[str, str]:
    if not known:
        result = await judged(served)
        origin = (await served.http.get(f"/v1/results/{result}/origin")).json()
        page = (await served.http.get("/v1/pages")).json()["items"][0]["id"]
        other = served.judging.register("another", lambda: rubric_of(leaf("river"), task_id="rivers"))
        await served.result("other", other)
        await settle(served, result)
        known |= {
            "home": "/",
            "agent": "/agents/walker",
            "jobs": "/jobs",
            "job": f"/jobs/{origin['job_id']}",
            "submission": f"/submissions/{origin['submission_id']}",
            "result": f"/results/{result}",
            "leaf": f"/results/{result}?leaf=river/through",
            "compare": "/compare?a=walker&b=other",
            "overridden leaf": f"/results/{result}?leaf=river/length",
            "withdrawn leaf": f"/results/{result}?leaf=town",
            "review": "/review",
            "review with overridden": "/review?settled=true",
            "overrides": "/review/overrides",
            "agreement": "/review/agreement",
            "suites": "/suites",
            "pages": "/pages",
            "captures": "/pages/captures",
            "browsers": "/pages/browsers",
            "page": f"/pages/{page}?mark=0-6",
            "error": "/jobs/job_nothing",
        }
    return known


async def settle(served: Served, result: str) -> None:
    """Override leaves of a result, and withdraw one of the overrides."""
    said = {"reason": "It is 21 kilometres by the map.", "by": "Ada"}
    for key, outcome in (("river/length", "passed"), ("river/through", "passed"), ("town", "failed")):
        body = {"leaf": key, "outcome": outcome, **said}
        word = (await served.http.post(f"/v1/results/{result}/overrides", json=body)).json()
    await served.http.post(f"/v1/results/{result}/overrides/{word['id']}/withdraw", json=said)


EMPTY = ("/", "/jobs", "/compare", "/review", "/review/overrides", "/review/agreement", "/pages", "/suites")


async def test_empty_screens_are_accessible_and_fit_the_window(open_dashboard: OpenDashboard, chromium: Browser):
    async with open_dashboard(workers=0) as empty, open_reader(chromium, empty.url, size=PHONE) as reader:
        found = {}
        for path in EMPTY:
            await reader.go(path)
            found[path] = await reader.violations()
            assert not await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth"), path
    assert found == {path: [] for path in EMPTY}


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)], ids=["wide-light", "narrow-dark"])
async def test_screens_are_accessible(served: Served, chromium: Browser, known: dict[str, str], size, dark: bool):
    async with open_reader(chromium, served.url, size=size, dark=dark) as reader:
        found = {}
        for name, path in (await screens(served, known)).items():
            await reader.go(path)
            if violations := await reader.violations():
                found[name] = violations
        assert found == {}


async def test_screens_fit_the_window(served: Served, chromium: Browser, known: dict[str, str]):
    too_wide = []
    async with open_reader(chromium, served.url) as reader:
        for name, path in (await screens(served, known)).items():
            await reader.go(path)
            for width in WIDTHS:
                await reader.page.set_viewport_size({"width": width, "height": 800})
                if await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    too_wide.append((name, width))
    assert too_wide == []


async def test_keyboard_reaches_the_content_first(served: Served, reader: Reader):
    await reader.go("/")
    await reader.page.keyboard.press("Tab")
    assert await reader.page.evaluate("document.activeElement.className") == "skip"
    await reader.page.keyboard.press("Enter")
    assert await reader.page.evaluate("document.activeElement.id") == "content"
    outline = await reader.page.evaluate(
        "(() => { const link = document.querySelector('.top nav a'); link.focus();"
        " return getComputedStyle(link).outlineStyle })()"
    )
    assert outline == "solid"


async def test_print_shows_the_tree_and_no_controls(served: Served, reader: Reader, known: dict[str, str]):
    await reader.go((await screens(served, known))["leaf"])
    await reader.page.emulate_media(media="print")
    assert not await reader.page.locator(".top nav").is_visible()
    assert not await reader.page.locator(".tree-head button").first.is_visible()
    assert await reader.page.locator("#tree .node").first.is_visible()
    assert await reader.page.locator(".leaf-panel").is_visible()


async def test_tree_of_six_hundred_nodes_can_be_folded_filtered_and_opened(served: Served, reader: Reader):
    text = served.judging.register("big", lambda: rubric_of(*many_leaves(24, 24), task_id="bridges"))
    result = await served.result("giant", text, task="bridges")
    await reader.go(f"/results/{result}")
    nodes = reader.page.locator("#tree .node")
    assert await nodes.count() == 1 + 24 + 24 * 24

    async def visible_after(control: str) -> int:
        await reader.page.locator(f'[data-tree="{control}"]').click()
        return await reader.page.locator("#tree .node:visible").count()

    assert await visible_after("close") <= 1 + 24
    assert await visible_after("open") == 1 + 24 + 24 * 24
    passed = reader.page.locator("#tree .leaf:visible .state-passed")
    assert await visible_after("missed") < 1 + 24 + 24 * 24
    assert await passed.count() == 0
    link = reader.page.locator("#tree .leaf:visible [data-leaf]").last
    key = await link.get_attribute("data-leaf")
    await link.click()
    await reader.page.locator(f'.leaf-panel[data-key="{key}"]').wait_for()
