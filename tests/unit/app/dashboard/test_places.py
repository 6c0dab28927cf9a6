"""Positions of quotes in screenshots, from the text boxes of lines."""

from __future__ import annotations

from app.dashboard.leaf_view import Box, places_of

KNOWN = {
    "version": 1,
    "unit": 10_000,
    "lines": [[0, 10, 0, 1000, 500, 5000, 200], [10, 20, 0, 1000, 800, 4000, 200], [30, 40, 1, 0, 100, 1000, 50]],
}


def test_quote_within_a_line_gets_part_of_its_box():
    found = places_of(KNOWN, [(2, 4)])
    assert found.boxes == {0: [Box(left=2000, top=500, width=1000, height=200)]}
    assert found.top == (0, 0.05)


def test_quote_over_two_lines_has_two_boxes():
    found = places_of(KNOWN, [(8, 12)])
    assert [(box.left, box.top, box.width) for box in found.boxes[0]] == [(5000, 500, 1000), (1000, 800, 800)]


def test_quote_without_a_line_has_no_box():
    assert places_of(KNOWN, [(22, 28)]).boxes == {}
    assert places_of(None, [(0, 5)]).top is None
    assert places_of(KNOWN, []).boxes == {}
