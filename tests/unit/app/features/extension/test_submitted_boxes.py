"""Text boxes that a browser submits: format and limits."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.features.extension.api import parse_submitted_boxes
from cache.page_text.text_boxes import MAX_LINES, Line

LINE = [0, 10, 20.5, 300, 18]


def boxes_json(**changes: Any) -> str:
    return json.dumps({"width": 1000, "height": 2000, "pieces": [["The tower", 9, [LINE]]], **changes})


def test_valid_boxes_are_parsed():
    boxes = parse_submitted_boxes(boxes_json())
    assert (boxes.width, boxes.height) == (1000, 2000)
    [piece] = boxes.pieces
    assert (piece.beginning, piece.length, piece.lines) == ("The tower", 9, (Line(0, 10, 20.5, 300, 18),))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"width": 0}, "width"),
        ({"width": float("nan")}, "width"),
        ({"height": float("inf")}, "height"),
        ({"height": "2000"}, "height"),
        ({"more": 1}, "more"),
        ({"pieces": {}}, "pieces"),
        ({"pieces": [["x" * 41, 41, [LINE]]]}, "pieces.0.0"),
        ({"pieces": [["x", 0, [LINE]]]}, "pieces.0.1"),
        ({"pieces": [["x", 1, []]]}, "pieces.0.2"),
        ({"pieces": [["x", 1, [[0, 1, 2, 3]]]]}, "pieces.0.2.0"),
        ({"pieces": [["x", 1, [[0, 1, 2, -3, 4]]]]}, "pieces.0.2.0.3"),
        ({"pieces": [["x", 1, [[0, 1e300, 2, 3, 4]]]]}, "pieces.0.2.0.1"),
        ({"pieces": [["x", 1, [[-1, 1, 2, 3, 4]]]]}, "pieces.0.2.0.0"),
        ({"pieces": [["x", 9, [[5, 1, 2, 3, 4], [2, 1, 2, 3, 4]]]]}, "not in text order"),
        ({"pieces": [["x", 9, [[10, 1, 2, 3, 4]]]]}, "beyond the end"),
        ({"pieces": [["x", 9, [LINE] * 100]] * (MAX_LINES // 100 + 1)}, f"more than {MAX_LINES} lines"),
        ({"pieces": [["x", 9, [LINE]]] * (MAX_LINES + 1)}, "pieces"),
    ],
)
def test_invalid_boxes_are_rejected_with_their_path(changes: dict[str, Any], where: str):
    with pytest.raises(ValueError, match=where):
        parse_submitted_boxes(boxes_json(**changes))


@pytest.mark.parametrize(
    "text", ["{", "null", "[]", "[" * 100_000, '{"width": 1, "height": 1, "pieces": [["\\ud800", 1, [[0,0,0,0,0]]]]}']
)
def test_invalid_json_is_rejected(text: str):
    with pytest.raises(ValueError, match=r"\w"):
        parse_submitted_boxes(text)


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_rejected_with_a_value_error(text: str):
    with contextlib.suppress(ValueError):
        parse_submitted_boxes(text)
