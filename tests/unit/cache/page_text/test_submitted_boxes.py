"""What a browser tells of places is held against the picture that it hands in."""

from __future__ import annotations

import io
import json

from PIL import Image, ImageDraw

from cache.page_text.submitted_boxes import SubmittedBoxes, validated_boxes
from cache.page_text.text_boxes import Line, Piece

TEXT = "The tower is high\nAnd it is old"


def picture(*tops: int, width: int = 500, height: int = 1000) -> bytes:
    """White, with something drawn at these heights."""
    drawn = Image.new("RGB", (width, height), "white")
    for top in tops:
        ImageDraw.Draw(drawn).text((50, top), "words of a page that stand here", fill="black")
    buffer = io.BytesIO()
    drawn.save(buffer, "JPEG")
    return buffer.getvalue()


def told(*pieces: tuple[str, float], width: float = 1000, height: float = 2000) -> SubmittedBoxes:
    """Pieces by their heights on the page, which is twice as large as its picture."""
    lines = {text: (Line(0, 100, top, 300, 22),) for text, top in pieces}
    return SubmittedBoxes(
        width=width,
        height=height,
        pieces=tuple(Piece(begins=text, length=len(text), lines=at) for text, at in lines.items()),
    )


def lines(told: SubmittedBoxes, *shots: bytes) -> list[list[int]]:
    found = validated_boxes(told, TEXT, shots)
    return [] if found is None else json.loads(found)["lines"]


def test_places_on_the_page_become_places_in_the_picture():
    found = lines(told(("The tower is high", 200), ("And it is old", 600)), picture(100, 300))
    assert found == [[0, 17, 0, 1000, 1000, 3000, 110], [18, 31, 0, 1000, 3000, 3000, 110]]


def test_a_picture_in_tiles_has_them_one_below_the_other():
    found = lines(
        told(("The tower is high", 200), ("And it is old", 1200)), picture(100, height=500), picture(100, height=500)
    )
    assert [(line[2], line[4]) for line in found] == [(0, 2000), (1, 2000)]


def test_what_the_picture_does_not_show_has_no_place():
    assert [line[0] for line in lines(told(("The tower is high", 200), ("And it is old", 1500)), picture(100))] == [0]


def test_a_picture_of_other_proportions_is_of_something_else():
    assert lines(told(("The tower is high", 200), height=9000), picture(100)) == []
    assert lines(told(("The tower is high", 200)), b"no picture") == []
    assert lines(told(("The tower is high", 200))) == []


def test_what_is_not_in_the_text_or_beyond_the_picture_has_no_place():
    assert lines(told(("Somebody else", 200), ("And it is old", 99_999)), picture(100)) == []
    beside = SubmittedBoxes(
        width=1000, height=2000, pieces=(Piece(begins="The tower", length=9, lines=(Line(0, 900, 200, 900, 22),)),)
    )
    assert lines(beside, picture(100)) == []
