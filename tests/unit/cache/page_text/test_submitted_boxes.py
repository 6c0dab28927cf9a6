"""Validation of submitted text boxes against the uploaded screenshot."""

from __future__ import annotations

import io
import json

from PIL import Image, ImageDraw

from cache.page_text.submitted_boxes import SubmittedBoxes, validate_boxes
from cache.page_text.text_boxes import Line, Piece

TEXT = "The tower is high\nAnd it is old"


def picture(*tops: int, width: int = 500, height: int = 1000) -> bytes:
    """Return a white image with text at these heights."""
    drawn = Image.new("RGB", (width, height), "white")
    for top in tops:
        ImageDraw.Draw(drawn).text((50, top), "words of a page that stand here", fill="black")
    buffer = io.BytesIO()
    drawn.save(buffer, "JPEG")
    return buffer.getvalue()


def submitted(*pieces: tuple[str, float], width: float = 1000, height: float = 2000) -> SubmittedBoxes:
    """Return boxes by their heights on a page that is twice as large as its screenshot."""
    lines = {text: (Line(0, 100, top, 300, 22),) for text, top in pieces}
    return SubmittedBoxes(
        width=width,
        height=height,
        pieces=tuple(Piece(beginning=text, length=len(text), lines=at) for text, at in lines.items()),
    )


def lines(submitted: SubmittedBoxes, *shots: bytes) -> list[list[int]]:
    found = validate_boxes(submitted, TEXT, shots)
    return [] if found is None else json.loads(found)["lines"]


def test_positions_on_the_page_are_converted_to_the_screenshot():
    found = lines(submitted(("The tower is high", 200), ("And it is old", 600)), picture(100, 300))
    assert found == [[0, 17, 0, 1000, 1000, 3000, 110], [18, 31, 0, 1000, 3000, 3000, 110]]


def test_tiles_of_a_screenshot_are_stacked_vertically():
    found = lines(
        submitted(("The tower is high", 200), ("And it is old", 1200)),
        picture(100, height=500),
        picture(100, height=500),
    )
    assert [(line[2], line[4]) for line in found] == [(0, 2000), (1, 2000)]


def test_box_without_visible_content_is_dropped():
    assert [
        line[0] for line in lines(submitted(("The tower is high", 200), ("And it is old", 1500)), picture(100))
    ] == [0]


def test_screenshot_with_different_proportions_is_rejected():
    assert lines(submitted(("The tower is high", 200), height=9000), picture(100)) == []
    assert lines(submitted(("The tower is high", 200)), b"no picture") == []
    assert lines(submitted(("The tower is high", 200))) == []


def test_box_outside_the_text_or_the_screenshot_is_dropped():
    assert lines(submitted(("Somebody else", 200), ("And it is old", 99_999)), picture(100)) == []
    beside = SubmittedBoxes(
        width=1000, height=2000, pieces=(Piece(beginning="The tower", length=9, lines=(Line(0, 900, 200, 900, 22),)),)
    )
    assert lines(beside, picture(100)) == []
