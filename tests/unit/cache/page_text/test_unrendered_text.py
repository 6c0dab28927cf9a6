"""Removal of text that its screenshot does not show, unless the screenshot may be wrong."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from cache.page_text.text_boxes import Line, Piece, ScreenshotArea
from cache.page_text.visible_text import VisibleText, hide_unrendered, visible_covered_texts

SHEETS = (
    ScreenshotArea(number=0, top=0, width=1280, height=800),
    ScreenshotArea(number=1, top=800, width=1280, height=800),
)
WORDS = [f"Line number {n} of the page" for n in range(6)]


def shots(*drawn: int) -> list[bytes]:
    """Return two screenshots that show these lines."""
    made = []
    for top in (0, 800):
        picture = Image.new("RGB", (1100, 688), "white")
        pen = ImageDraw.Draw(picture)
        for number in drawn:
            pen.text((90, (200 * number - top) * 0.86 + 2), "Some words that are drawn", fill="black")
        made.append(_jpeg(picture))
    return made


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def page(*pieces: Piece) -> VisibleText:
    return VisibleText(
        title="",
        text="\n\n".join(WORDS),
        hidden="before",
        links=(),
        headlines=(),
        facts={},
        truncated=False,
        places=pieces or tuple(piece(n) for n in range(6)),
    )


def piece(number: int, *, width: float = 300) -> Piece:
    words = WORDS[number]
    return Piece(beginning=words, length=len(words), lines=(Line(0, 100, 200 * number, width, 20),))


def test_text_missing_from_all_screenshots_is_hidden():
    seen = hide_unrendered(page(), SHEETS, shots(0, 2, 3, 5))
    assert seen.text == "\n\n".join(WORDS[n] for n in (0, 2, 3, 5))
    assert seen.hidden == f"{WORDS[1]}\n{WORDS[4]}\nbefore"


def test_screenshot_that_shows_little_of_the_page_hides_nothing():
    assert hide_unrendered(page(), SHEETS, shots(0, 1)) == page()
    assert hide_unrendered(page(), SHEETS, shots()) == page()


def _shot(*marks: tuple[int, int, int, int], cover: str = "white") -> bytes:
    picture = Image.new("RGB", (200, 100), cover)
    pen = ImageDraw.Draw(picture)
    for mark in marks:
        pen.rectangle(mark, fill="black")
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def test_text_whose_removal_changes_the_screenshot_is_visible() -> None:
    first, second = (20.0, 110.0, 60.0, 20.0), (20.0, 150.0, 60.0, 20.0)
    with_first, without = _shot((25, 14, 60, 24)), _shot()
    assert visible_covered_texts([first, second], 100, 200, [with_first, without, with_first]) == [0]
