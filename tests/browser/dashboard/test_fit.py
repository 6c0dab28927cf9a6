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
            "settled leaf": f"/results/{result}?leaf=river/length",
            "withdrawn leaf": f"/results/{result}?leaf=town",
            "review": "/review",
            "review with settled": "/review?settled=true",
            "settled": "/review/settled",
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


EMPTY = ("/", "/jobs", "/compare", "/review", "/review/settled", "/review/agreement", "/pages", "/suites")


async def test_empty_screens_are_accessible_and_fit_the_window(open_dashboard: OpenDashboard, chromium: Browser):
    async with open_dashboard(workers=0) as empty, open_reader(chromium, empty.url, size=PHONE) as reader:
        found = {}
        for path in EMPTY:
            await reader.go(path)
            found[path] = await reader.violations()
            assert not await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth"), path
    assert found == {path: [] for path in EMPTY}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["wide", "narrow"])
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


TIMED = """async (act) => {
  const start = performance.now();
  await act();
  document.body.offsetHeight;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""
MOST_MS = 100
TRIES = 12


async def test_tree_of_six_hundred_nodes_responds_within_100_ms(served: Served, reader: Reader):
    text = served.judging.register("big", lambda: rubric_of(*many_leaves(24, 24), task_id="bridges"))
    result = await served.result("giant", text, task="bridges")
    await reader.go(f"/results/{result}")
    assert await reader.page.locator("#tree .node").count() == 1 + 24 + 24 * 24

    async def best(act: str) -> float:
        """Return the minimum of up to twelve runs, so that other load on the machine does not count."""
        least = float("inf")
        for _ in range(TRIES):
            least = min(least, float(await reader.page.evaluate(f"({TIMED})({act})")))
            if least < MOST_MS:
                break
        return least

    def click(selector: str) -> str:
        return f"() => document.querySelector('{selector}').click()"

    leaf_shown = (
        "async () => { const leaves = [...document.querySelectorAll('#tree .leaf [data-leaf]')];"
        " const link = leaves[Math.floor(Math.random() * leaves.length)]; link.click();"
        " while (document.querySelector('.leaf-panel')?.dataset.key !== link.dataset.leaf)"
        " await new Promise((done) => setTimeout(done, 1)); }"
    )
    took = {
        "unfold all": await best(click('[data-tree="open"]')),
        "collapse all": await best(click('[data-tree="close"]')),
        "failures first": await best(click('[data-tree="failures"]')),
        "only what did not pass": await best(click('[data-tree="missed"]')),
        "fold one": await best(click("#part3 .fold")),
        "open a leaf": await best(leaf_shown),
    }
    print({name: round(ms, 1) for name, ms in took.items()})
    assert {name: ms for name, ms in took.items() if ms >= MOST_MS} == {}
