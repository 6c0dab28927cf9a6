"""Positions of lines in a frame, converted to positions on the surrounding page."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cache.page_text.text_boxes import FrameText, Line, Piece, Viewport, insert_frames

WINDOW = Viewport(left=0, top=0, width=400, height=200)


def on_page(line: tuple[float, float, float, float], view: Viewport = WINDOW, **frame_options: Any) -> Line:
    """Convert one line of a frame, by default at (100, 50) with a size of 400 by 200."""
    inside = FrameText(pieces=(Piece(beginning="in it", length=5, lines=(Line(0, *line),)),), view=view)
    box = frame_options.get("box", [100, 50, 400, 200])
    [piece] = insert_frames(
        [[0, box, frame_options.get("shown", [box[0], box[1], box[0] + box[2], box[1] + box[3]])]], {0: inside}
    )
    assert piece.in_frame
    return piece.lines[0]


def test_scroll_offset_of_the_frame_is_subtracted():
    assert on_page((10, 520, 300, 16), Viewport(left=0, top=500, width=400, height=200)) == Line(0, 110, 70, 300, 16)


def test_pieces_are_in_text_order_and_lost_frames_are_skipped():
    inner = FrameText(pieces=(Piece(beginning="in it", length=5, lines=()),), view=WINDOW)
    entries = [
        ["before", 6, [[0, 1, 2, 3, 4]]],
        [1, [0, 0, 9, 9], [0, 0, 9, 9]],
        [0, [0, 0, 9, 9], [0, 0, 9, 9]],
        ["after", 5, []],
    ]
    assert [piece.beginning for piece in insert_frames(entries, {1: inner})] == ["before", "in it", "after"]


numbers = st.floats(-2000, 2000)


@given(st.tuples(numbers, numbers, st.floats(0, 3000), st.floats(0, 3000)))
def test_no_line_leaves_the_visible_area(line: tuple[float, float, float, float]):
    found = on_page(line, shown=[150, 60, 420, 230])
    if found.width > 0:
        assert found.left >= 150
        assert found.top >= 60
        assert found.left + found.width <= 420 + 1e-6
        assert found.top + found.height <= 230 + 1e-6
