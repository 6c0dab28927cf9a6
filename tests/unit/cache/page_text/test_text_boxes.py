"""Text boxes: pieces of text located in the text of a page by their beginning, in order."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.page_text.text_boxes import BOX_UNITS, Line, Piece, ScreenshotArea, places_json

SHEET = ScreenshotArea(number=0, top=0, width=1000, height=2000)


def lines_of(text: str, *pieces: Piece, sheets=(SHEET,)) -> list[list[int]]:
    found = places_json(text, [(sheets, pieces)])
    return [] if found is None else json.loads(found)["lines"]


def piece(text: str, top: float = 100, *, starts: tuple[int, ...] = (0,)) -> Piece:
    lines = tuple(Line(start, 100, top + 20 * nth, 500, 20) for nth, start in enumerate(starts))
    return Piece(beginning=text[:40], length=len(text), lines=lines)


def test_box_is_a_fraction_of_its_screenshot():
    assert lines_of("# Some words", piece("Some words")) == [[2, 12, 0, 1000, 500, 5000, 100]]


def test_lines_of_a_piece_divide_its_text():
    assert [line[:2] for line in lines_of("one two three", piece("one two three", starts=(0, 4, 8)))] == [
        [0, 4],
        [4, 8],
        [8, 13],
    ]


def test_line_is_on_the_tile_that_shows_its_middle():
    tiles = [ScreenshotArea(number=n, top=1000 * n, width=1000, height=1000) for n in range(2)]
    found = lines_of("one two", piece("one", 995), piece("two", 1500), sheets=tiles)
    assert [line[2] for line in found] == [1, 1]
    assert found[1][4] == 5000


@pytest.mark.parametrize("top", [-500.0, 5000.0, math.nan, math.inf])
def test_line_outside_all_screenshots_has_no_place(top: float):
    assert places_json("one", [([SHEET], [piece("one", top)])]) is None


PIECES = st.lists(st.text(max_size=60), max_size=8)
BOX = st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 4)


@given(st.text(max_size=300), PIECES, st.lists(BOX, min_size=1, max_size=3))
def test_boxes_are_always_within_screenshot_and_text(text: str, begins: list[str], boxes: list[tuple]):
    pieces = [
        Piece(beginning=begin, length=len(begin), lines=tuple(Line(nth, *box) for nth, box in enumerate(boxes)))
        for begin in begins
    ]
    for start, _, number, *box in lines_of(text, *pieces):
        assert 0 <= start <= len(text)
        assert number == 0
        assert all(0 <= one <= BOX_UNITS for one in box)
