"""Places of text in screenshots uploaded by the extension: red words lie in the text box recorded for them.

Tested in a real Chromium with several device pixel ratios and scroll positions.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from patchright.async_api import Browser
from PIL import Image

from app.dashboard.leaf_view import Places, places_of
from app.features.extension.archive import write_files
from cache.backends.browser_search import find_browser
from rubrics.rubric import Rubric
from rubrics.verdict import Quote
from tests.browser.dashboard.conftest import OpenDashboard, open_reader
from tests.browser.dashboard.test_capturing_by_hand import Person
from tests.browser.test_places import red_in
from tests.fakes.judged import leaf, page_entry, rubric_of
from tests.fakes.toolbar import toolbar
from tests.integration.app.api.test_page_uploads import png

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

URL = "https://walled.example/tower"
LINE = "<p>Some words stand here, so that there is more to read on this page than what is looked for.</p>"
WRAPPED = "WRAPPED words that go on over more than one line of a narrow paragraph"
PAGE = f"""<!doctype html><title>The tower</title><style>body {{ margin: 30px }}
b {{ font-weight: normal; background: red; color: white }} header {{ position: fixed; top: 0; right: 0 }}</style>
<header>News of the day</header><h1>The <b>HEADING</b> of it</h1>{LINE}
<p style="width: 500px">Words before it, <b>{WRAPPED}</b>, and after.</p>
<table><tr><th>Name<th>Born<tr><td>Ada<td><b>CELL</b> 1815</table><div style="height: 1400px"></div>
<p>Far below <b>BELOW the fold</b> it is.</p><div style="height: 1600px"></div>
<p>And the <b>FOOT of the page</b> at last.</p>{LINE}"""
WORDS = ("HEADING", WRAPPED, "CELL", "BELOW the fold", "FOOT of the page")
MOVING = f"""<!doctype html><title>The tower</title><p>Before it stands this.</p>{LINE}<div id=late></div>
<div style="height: 1300px"></div><p>And <b>MOVED words</b> here.</p>{LINE}<div style="height: 900px"></div><script>
addEventListener("scroll", () => {{ if (scrollY > 900) late.style.height = "700px"; }});</script>"""


class Tab(Person):
    """A person with the extension, and a page in the current tab."""

    shows: str = PAGE

    async def captured(self, html: str, *, scrolled: int = 0) -> dict[str, Any]:
        """Show the HTML in the tab, capture it with the extension, and return the stored page."""
        self.shows = html
        await self.bar.page.goto(URL)
        await self.bar.page.evaluate(f"scrollTo(0, {scrolled})")
        added = {"action": "flag", "url": URL, "reason": "once more"}
        assert (await self.served.http.post("/v1/pages/changes", json=added)).status_code == 201
        popup = await self.bar.press()
        await popup.run("chrome.storage.session.remove('status')")  # the status of the previous capture
        await popup.until("document.getElementById('status').textContent === ''")
        await popup.click("#capture")
        await popup.until("document.getElementById('status').textContent === 'Captured and submitted.'")
        return await self.page(URL)

    async def places(self, page: dict[str, Any], words: str) -> Places:
        text = (await self.served.http.get(f"/v1/pages/{page['id']}/text")).text
        start = text.index(words)
        known = await self.served.http.get(f"/v1/pages/{page['id']}/places")
        return places_of(known.json() if known.status_code == 200 else None, [(start, start + len(words))])


@pytest_asyncio.fixture(loop_scope="session")
async def tab(open_dashboard: OpenDashboard, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Tab]:
    """Tab with a device pixel ratio, 1 unless a test sets it."""
    program = find_browser(None).full
    assert program is not None, "no whole Chromium on this machine; `make setup` installs one"
    write_files(tmp_path / "extension")
    async with (
        open_dashboard() as served,
        toolbar(program, tmp_path / "extension", tmp_path / "profile", dense=getattr(request, "param", 1.0)) as bar,
    ):
        added = {"action": "add", "url": URL, "task_id": "towers"}
        assert (await served.http.post("/v1/pages/changes", json=added)).status_code == 201
        new_tab = Tab(served, bar)

        async def answer(route: Any) -> None:
            await route.fulfill(body=new_tab.shows, content_type="text/html")

        await bar.context.route("https://**/*", answer)
        await bar.page.goto(URL)
        await (await new_tab.pair(await new_tab.code())).until("!document.getElementById('work').hidden")
        yield new_tab


async def red_in_box(tab: Tab, page: dict[str, Any], words: str) -> tuple[float, float]:
    """Return the fraction of red pixels inside the box of the words, and the fraction of its width that is red."""
    found = await tab.places(page, words)
    [(number, boxes)] = found.boxes.items()
    shot = (await tab.served.http.get(f"/v1/pages/{page['id']}/screenshot", params={"n": number})).content
    wide, high = Image.open(io.BytesIO(shot)).size
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.left + box.width for box in boxes), max(box.top + box.height for box in boxes)
    across, down = wide / found.unit, high / found.unit
    return red_in(shot, (int(left * across) - 4, int(top * down) - 3, int(right * across) + 4, int(bottom * down) + 3))


@pytest.mark.parametrize("tab", [1.0, 2.0, 1.25], ids=["plain", "dense", "between"], indirect=True)
async def test_quoted_words_have_a_box_in_the_uploaded_screenshot(tab: Tab):
    page = await tab.captured(PAGE, scrolled=1200)
    shares = {words: await red_in_box(tab, page, words) for words in WORDS}
    assert sum(share for share, _ in shares.values()) > 0.97, shares
    assert min(share for share, _ in shares.values()) > 0.02, shares
    assert min(width for _, width in shares.values()) > 0.6, shares
    assert await tab.bar.page.evaluate("[scrollY, document.getElementById('assay-still')]") == [1200, None]


async def test_text_uploaded_with_a_picture_has_no_places_and_the_leaf_says_so(tab: Tab, chromium: Browser):
    words = "Before it stands this, with more words beside it than a page needs."
    given: dict[str, Any] = {"text": (None, words), "image": ("a.png", png(), "image/png")}
    flagged = (await tab.state(URL))["page_id"] or (await tab.captured(MOVING))["id"]
    answer = await tab.served.http.put(f"/v1/pages/{flagged}/content", files=given)
    assert answer.status_code == 201, answer.text
    page = answer.json()["id"]
    quote = Quote(text=words[:20], page_id=page, start=0, end=20)

    def rubric() -> Rubric:
        return rubric_of(leaf("said", claim="It stands", sources=[URL], quotes=[quote]), task_id="towers")

    tab.served.judging.register("by hand", rubric, pages=[page_entry(URL, page_id=page)])
    result = await tab.served.result("by-hand", "by hand", task="towers")
    async with open_reader(chromium, tab.served.url) as reader:
        await reader.go(f"/results/{result}?leaf=said")
        assert "is unknown, because the page was uploaded" in await reader.text("figcaption")


async def test_text_that_moves_during_the_screenshot_has_no_box(tab: Tab):
    page = await tab.captured(MOVING)
    assert (await tab.places(page, "MOVED words")).boxes == {}
    assert (await tab.places(page, "Before it stands this")).boxes != {}
