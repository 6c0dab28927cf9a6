"""Places in a frame, as they lie on the page around it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cache.page_text.text_boxes import FrameText, Line, Piece, Viewport, insert_frames

WINDOW = Viewport(left=0, top=0, width=400, height=200)


def on_page(line: tuple[float, float, float, float], view: Viewport = WINDOW, **hole: Any) -> Line:
    """One line of a frame that stands at (100, 50), 400 by 200 large."""
    inside = FrameText(pieces=(Piece(begins="in it", length=5, lines=(Line(0, *line),)),), view=view)
    box = hole.get("box", [100, 50, 400, 200])
    [piece] = insert_frames(
        [[0, box, hole.get("shown", [box[0], box[1], box[0] + box[2], box[1] + box[3]])]], {0: inside}
    )
    assert piece.framed
    return piece.lines[0]


def test_a_line_is_moved_by_where_the_frame_stands():
    assert on_page((10, 20, 300, 16)) == Line(0, 110, 70, 300, 16)


def test_a_scrolled_frame_moves_it_back():
    assert on_page((10, 520, 300, 16), Viewport(left=0, top=500, width=400, height=200)) == Line(0, 110, 70, 300, 16)


def test_a_frame_that_is_drawn_larger_enlarges_it():
    assert on_page((10, 20, 100, 16), box=[100, 50, 800, 400]) == Line(0, 120, 90, 200, 32)


def test_what_is_scrolled_away_or_cut_off_has_no_width():
    assert on_page((10, 520, 300, 16)).width == 0
    assert on_page((10, 20, 300, 16), shown=[100, 100, 500, 250]).width == 0


def test_what_is_half_seen_is_cut_to_what_is():
    assert on_page((10, 190, 380, 16), shown=[100, 50, 460, 252]) == Line(0, 110, 240, 350, 12)


def test_pieces_stand_in_the_order_of_the_text_and_lost_frames_cost_nothing():
    inner = FrameText(pieces=(Piece(begins="in it", length=5, lines=()),), view=WINDOW)
    noted = [
        ["before", 6, [[0, 1, 2, 3, 4]]],
        [1, [0, 0, 9, 9], [0, 0, 9, 9]],
        [0, [0, 0, 9, 9], [0, 0, 9, 9]],
        ["after", 5, []],
    ]
    assert [piece.begins for piece in insert_frames(noted, {1: inner})] == ["before", "in it", "after"]


def test_a_window_without_size_has_no_places():
    assert (
        insert_frames(
            [[0, [0, 0, 9, 9], [0, 0, 9, 9]]],
            {0: FrameText(pieces=(), view=Viewport(left=0, top=0, width=0, height=0))},
        )
        == ()
    )


numbers = st.floats(-2000, 2000)


@given(st.tuples(numbers, numbers, st.floats(0, 3000), st.floats(0, 3000)))
def test_no_line_leaves_what_can_be_seen(line: tuple[float, float, float, float]):
    found = on_page(line, shown=[150, 60, 420, 230])
    if found.width > 0:
        assert found.left >= 150
        assert found.top >= 60
        assert found.left + found.width <= 420 + 1e-6
        assert found.top + found.height <= 230 + 1e-6
