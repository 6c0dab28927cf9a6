"""Places of text in frames: red words in a frame lie in the text box recorded for them."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from app.dashboard.leaf_view import places_of
from cache.backends.patchright import BrowserCapturer
from cache.capture import Observation
from cache.egress.proxy import EgressProxy
from tests.browser.test_places import framed, red_in
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.web import Reply, StandInWeb

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STYLE = "<!doctype html><style>body { margin: 8px } b { font-weight: normal; color: red }</style>"
PROSE = "<p>Words of the page itself stand around the frame, and they are many enough to be found again.</p>"
WORDS = "FRAMED words that are red"
INSIDE = f"{STYLE}<p>Inside it begins like this, with some words.</p><p>Then <b>{WORDS}</b> and the rest.</p>"
AWAY = "position:absolute;left:350px;top:300px"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """One site with two host names. A frame from the other name is rendered by another process."""

    here: StandInWeb
    capturer: BrowserCapturer

    @property
    def elsewhere(self) -> str:
        return f"http://localhost:{self.here.port}"

    async def show(self, path: str, page: str, **inner: str) -> Observation:
        for name, document in inner.items():
            self.here.pages[f"{path}-{name}"] = Reply.html(document)
        self.here.pages[path] = Reply.html(page)
        return await self.capturer.capture(self.here.url(path))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sites(browser_program: Path) -> AsyncIterator[Sites]:
    async with StandInWeb() as site, EgressProxy(frozenset({site.host_port, f"localhost:{site.port}"})) as proxy:
        capturer = BrowserCapturer(
            browser_program,
            proxy,
            semaphore=asyncio.Semaphore(4),
            deadline_s=90,
            allow_unsandboxed=is_sandbox_missing(),
        )
        try:
            yield Sites(here=site, capturer=capturer)
        finally:
            await capturer.aclose()


def srcdoc(document: str) -> str:
    return f'srcdoc="{html.escape(document)}"'


def assert_box_covers_red(seen: Observation, words: str = WORDS) -> int:
    """Return the screenshot that contains the words; assert that their box covers the red area and little else."""
    picture, (left, top, right, bottom) = framed(seen, words)
    share, width = red_in(seen.screenshots[picture], (left - 4, top - 2, right + 4, bottom + 2))
    assert share > 0.97, (left, top, right, bottom)
    assert width > 0.6, (left, top, right, bottom)
    return picture


def has_no_box(seen: Observation, words: str = WORDS) -> bool:
    start = seen.text.index(words)
    return not places_of(json.loads(seen.places or b'{"lines":[],"unit":1}'), [(start, start + len(words))]).boxes


FRAMES = {
    "plain": "<iframe width=500 height=200 {src}></iframe>",
    "edged": "<iframe width=500 height=200 style='border:13px solid #0a0;padding:21px 17px' {src}></iframe>",
    "away": f"<iframe width=500 height=200 style='{AWAY}' {{src}}></iframe>",
    "scaled": "<iframe width=500 height=200 style='transform:scale(1.4);transform-origin:0 0' {src}></iframe>",
    "low": "<div style='height:1500px'></div><iframe width=500 height=200 {src}></iframe>",
    "second": "<div style='height:7500px'></div><iframe width=500 height=200 {src}></iframe>",
    "cell": "<table><tr><th>Name<th>Page<tr><td>Ada<td><iframe width=500 height=200 {src}></iframe></table>",
    "shadow": "<div id=host></div><script>host.attachShadow({{mode: 'open'}}).innerHTML = `<p>In it</p>"
    "<iframe width=500 height=200 {src}></iframe>`</script>",
}  # fmt: skip


async def test_quoted_words_of_a_frame_have_a_box_in_the_screenshot(sites: Sites):
    async def check(how: str, origin: str) -> None:
        path = f"/framed-{how}-{origin}"
        src = {
            "srcdoc": srcdoc(INSIDE),
            "same": f'src="{path}-inner"',
            "other": f'src="{sites.elsewhere}{path}-inner"',
        }[origin]
        seen = await sites.show(path, f"{STYLE}{PROSE}{FRAMES[how].format(src=src)}{PROSE}", inner=INSIDE)
        assert assert_box_covers_red(seen) == (1 if how == "second" else 0), (how, origin)

    origins = ("srcdoc", "same", "other")
    await asyncio.gather(*(check(how, origins[nth % 3]) for nth, how in enumerate(FRAMES)), check("away", "other"))


async def test_scrolled_frame_has_boxes_only_for_text_in_view(sites: Sites):
    rows = "<p>a line that was scrolled away</p>" * 30
    scroll = "<script>document.querySelector('b').scrollIntoView({block: 'center'})</script>"
    inside = f"{STYLE}{rows}<p>Then <b>{WORDS}</b> and the rest.</p>{rows}{scroll}"
    page = f"{STYLE}{PROSE}<iframe style='{AWAY}' width=500 height=200 {srcdoc(inside)}></iframe>"
    seen = await sites.show("/scrolled", page)
    assert_box_covers_red(seen)
    assert has_no_box(seen, "a line that was scrolled away")
