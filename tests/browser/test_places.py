"""Places of text in screenshots: red words lie in the text box recorded for them."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from PIL import Image

from app.dashboard.leaf_view import places_of
from cache.capture import Observation
from tests.browser.conftest import Rig
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

FILLER = "Some words stand here so that the lines of this paragraph break more than once on every screen. " * 8
PAGE = f"""<!doctype html><title>Places</title><style>b {{ font-weight: normal }} .it {{ color: red }}</style>
<h1>The <b>HEADING</b> of it</h1><p>{FILLER}<b>WRAPPED words that are red</b> {FILLER}</p>
<ul><li>one<li>- <b>LISTED</b> two</ul>
<table><tr><th>Name<th>Born</tr><tr><td>Ada<td><b>CELL</b> 1815</tr></table>
<pre>a = 1
    <b>INDENTED</b> = 2</pre>
<p>one one one <b>one ONE one</b> one</p>
<div style="height:7500px"></div><p>Far below <b>SECOND PICTURE</b> it is.</p>"""


async def shown(rig: Rig, path: str, html: str) -> Observation:
    return await rig.show(path, Reply.html(html))


def framed(seen: Observation, words: str) -> tuple[int, tuple[int, int, int, int]]:
    """Return the screenshot that contains the words, and the box around them in pixels."""
    assert seen.places is not None
    start = seen.text.index(words)
    found = places_of(json.loads(seen.places), [(start, start + len(words))])
    [(picture, boxes)] = found.boxes.items()
    wide, high = Image.open(io.BytesIO(seen.screenshots[picture])).size
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right = max(box.left + box.width for box in boxes)
    bottom = max(box.top + box.height for box in boxes)
    unit = found.unit
    return picture, (left * wide // unit, top * high // unit, right * wide // unit, bottom * high // unit)


def red_in(picture: bytes, around: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return the fraction of red pixels inside a box, and the fraction of the box's width that is red."""
    red, green, _ = Image.open(io.BytesIO(picture)).convert("RGB").split()
    mask = Image.merge("L", [red.point(lambda one: 255 * (one > 180))])
    dark = green.point(lambda one: 255 * (one < 110))
    both = Image.composite(dark, Image.new("L", mask.size, 0), mask)
    inside = both.crop(around)
    count = both.histogram()[255]
    box = inside.getbbox() or (0, 0, 0, 0)
    return inside.histogram()[255] / max(1, count), (box[2] - box[0]) / max(1, around[2] - around[0])


WORDS = ("HEADING", "WRAPPED words that are red", "LISTED", "CELL", "INDENTED", "one ONE one", "SECOND PICTURE")


async def test_quoted_words_have_a_box_in_the_screenshot(rig: Rig):
    html = [PAGE.replace(f"<b>{words}", f"<b class=it>{words}") for words in WORDS]
    pages = await asyncio.gather(*(shown(rig, f"/places-{nth}", page) for nth, page in enumerate(html)))
    for words, seen in zip(WORDS, pages, strict=True):
        picture, box = framed(seen, words)
        assert picture == (1 if words == "SECOND PICTURE" else 0)
        left, top, right, bottom = box
        share, width = red_in(seen.screenshots[picture], (left - 4, top - 2, right + 4, bottom + 2))
        assert share > 0.97, (words, box)
        assert width > 0.6, (words, box)
