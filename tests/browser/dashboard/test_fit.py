"""Every screen in light and dark, at all widths, with keyboard and screen reader; large trees; tables as cards."""

from __future__ import annotations

import pytest
from patchright.async_api import Browser

from app.dashboard.results import MAX_ROWS, SECTION
from tests.browser.dashboard.conftest import LAPTOP, PHONE, OpenDashboard, Reader, Served, open_reader
from tests.browser.dashboard.test_reading_results import judged
from tests.fakes.judged import leaf, many_leaves, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

PHONE_WIDTHS = (390, 600, 639)
WIDE_WIDTHS = (834, 1024, 1280, 1920)
MAY_SCROLL = "pre, code, .shots, .prose table"
"""Code, pictures, and tables of an answer."""
OVERFLOWING = f"""() => [...document.querySelectorAll("body *")].filter((one) => {{
  if (one.closest("{MAY_SCROLL}, .unseen, .sprite, .skip, thead") || !one.checkVisibility()) return false;
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1;
  const box = one.getBoundingClientRect();
  return scrolls || (box.width > 0 && box.right > document.documentElement.clientWidth + 1);
}}).map((one) => `${{one.tagName}}.${{one.className.baseVal ?? one.className}}: ${{one.textContent.slice(0, 40)}}`)"""
UNNAMED = """() => [...document.querySelectorAll("main table.data tbody td")].filter((cell) =>
  cell.dataset.label === undefined && cell.innerText.trim() && !cell.closest(".options"))
  .map((cell) => cell.innerText)"""
LABELS_OF_TABLES = """() => [...document.querySelectorAll("main table.data:not(.options)")].map((table) => {
  const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]).map((cell) => cell.textContent.trim());
  return [...table.tBodies[0].rows[0].cells].map((cell) => cell.dataset.label).filter((label) => label)
    .filter((label) => !heads.includes(label));
}).flat()"""


async def problems_of(reader: Reader, path: str, size: tuple[int, int]) -> list[str]:
    """Open a page and return its violations of accessibility, and what exceeds windows of a phone or a laptop."""
    await reader.go(path)
    found = []
    if size == PHONE:
        await reader.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in PHONE_WIDTHS if size == PHONE else WIDE_WIDTHS:
        await reader.page.set_viewport_size({"width": width, "height": size[1]})
        if size == PHONE:
            found += [f"{wide} at {width}" for wide in (await reader.page.evaluate(OVERFLOWING))[:5]]
        if await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"scrolls horizontally at {width}")
    await reader.page.set_viewport_size({"width": size[0], "height": size[1]})
    if (
        size == PHONE
    ):  # the hundred operations of the API reference have one template, and axe takes long if all are open
        others = "document.querySelectorAll('.reference details ~ details')"
        await reader.page.evaluate(f"{others}.forEach(one => one.remove())")
    return await reader.violations() + found


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
            "page": f"/pages/{page}?mark=0-6",
            "reference": "/docs",
            "error": "/jobs/job_nothing",
            "unknown address": "/nowhere",
            "submit": "/submit",
            "search": "/search?q=r",
            "statistics": "/agents/walker/statistics",
            "tasks": "/tasks",
            "task": "/tasks/rivers",
            "checks": "/checks",
        }
    return known


async def settle(served: Served, result: str) -> None:
    """Override leaves of a result, and withdraw one of the overrides."""
    said = {"reason": "It is 21 kilometres by the map.", "by": "Ada"}
    for key, outcome in (("river/length", "passed"), ("river/through", "passed"), ("town", "failed")):
        body = {"leaf": key, "outcome": outcome, **said}
        word = (await served.http.post(f"/v1/results/{result}/overrides", json=body)).json()
    await served.http.post(f"/v1/results/{result}/overrides/{word['id']}/withdraw", json=said)


EMPTY = (
    "/",
    "/jobs",
    "/compare",
    "/tasks",
    "/review",
    "/review/overrides",
    "/review/agreement",
    "/pages",
    "/suites",
)


async def test_empty_screens_are_accessible_and_fit_the_window(open_dashboard: OpenDashboard, chromium: Browser):
    async with open_dashboard(workers=0) as empty, open_reader(chromium, empty.url, size=PHONE) as reader:
        found = {}
        for path in EMPTY:
            await reader.go(path)
            found[path] = await reader.violations()
            assert not await reader.page.evaluate("document.documentElement.scrollWidth > innerWidth"), path
    assert found == {path: [] for path in EMPTY}


WIDE = ("home", "result", "leaf", "compare", "review", "page", "submit")
"""Screens whose layout differs in wide windows."""


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)], ids=["wide-light", "narrow-dark"])
async def test_screens_are_accessible_and_fit(
    served: Served, chromium: Browser, known: dict[str, str], size, dark: bool
):
    found = {}
    async with open_reader(chromium, served.url, size=size, dark=dark) as reader:
        for name, path in (await screens(served, known)).items():
            if size == LAPTOP and name not in WIDE:
                continue
            found[name] = await problems_of(reader, path, size)
            assert await reader.page.evaluate(UNNAMED) == [], name
            assert set(await reader.page.evaluate(LABELS_OF_TABLES)) <= {"On a scale"}, name
    assert found == {name: [] for name in found}


async def test_keyboard_reaches_the_content_first_and_cards_keep_their_table_roles(
    served: Served, chromium: Browser, reader: Reader, known: dict[str, str]
):
    await screens(served, known)
    async with open_reader(chromium, served.url, size=PHONE) as phone:
        await phone.go("/")
        row = phone.page.locator("table.agents tbody tr").first
        assert await row.evaluate("row => getComputedStyle(row).display") == "grid"
        # The roles must be written: some browsers take them from the elements only if these are laid out as a table.
        bare = "table.agents:not([role]), table.agents :is(thead, tbody, tr, th, td):not([role])"
        assert await phone.page.evaluate(f"document.querySelectorAll('{bare}').length") == 0
        shown = "selector => [...document.querySelectorAll(selector)].filter((cell) => cell.checkVisibility()).length"
        for columns in ("thead [role=columnheader]", "tbody tr:first-child :is([role=rowheader], [role=cell])"):
            assert await phone.page.evaluate(shown, f"table.agents {columns}") == 7
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


async def test_tree_of_ten_thousand_leaves_is_loaded_in_parts(served: Served, reader: Reader):
    text = served.judging.register("big", lambda: rubric_of(*many_leaves(20, 500), task_id="bridges"))
    result = await served.result("giant", text, task="bridges")
    page = await served.http.get(f"/results/{result}")
    assert page.text.count('class="node') < 2 * MAX_ROWS and len(page.content) < 400_000
    section = await served.http.get(f"/results/{result}/tree?group=part3&at=400&expand=true")
    assert section.text.count('class="node') == SECTION

    await reader.go(f"/results/{result}")
    loaded = reader.page.locator("#tree .node")
    assert await reader.page.locator(".leaf-panel").get_attribute("data-key") == "part0/leaf7"
    # Rows are loaded when they scroll into view.
    before = await loaded.count()
    await reader.page.evaluate("document.querySelector('#tree .unloaded').scrollIntoView()")
    await reader.wait_until(f"document.querySelectorAll('#tree .node').length > {before}")
    # A leaf whose row is not loaded brings its section with it.
    await reader.go(f"/results/{result}#part9/leaf4750")
    await reader.page.locator('.leaf-panel[data-key="part9/leaf4750"]').wait_for()
    await reader.page.locator('#tree .chosen[id="part9/leaf4750"]').wait_for()
    assert await loaded.count() < 2 * MAX_ROWS
    await reader.page.keyboard.press("n")
    await reader.page.locator('.leaf-panel[data-key="part9/leaf4753"]').wait_for()
    # What did not pass, in all groups.
    await reader.page.locator('[data-tree="missed"]').click()
    await reader.wait_until("document.querySelector('#tree .leaf .state-passed') === null")
    assert 0 < await loaded.count() < 2 * MAX_ROWS
    assert reader.page_errors == []
