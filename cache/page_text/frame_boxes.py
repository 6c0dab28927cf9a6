"""Text boxes of inner frames, converted to the coordinates of the page. Pure functions.

The walker reports boxes of a frame in the coordinates of the frame's document. On the page they are offset by the
frame's position and scroll state, and visible only inside the visible part of the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cache.page_text.text_boxes import Line, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewport:
    """Viewport of a document: scroll position and size, in pixels of the document."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameText:
    """Text of a frame: its pieces, in pixels of the frame's document, and the viewport."""

    pieces: Sequence[Piece]
    view: Viewport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hole:
    """Content box of a frame on the page, in pixels of the page.

    ``shown``: visible part of the box (left, top, right, bottom).
    """

    left: float
    top: float
    width: float
    height: float
    shown: tuple[float, float, float, float]


def insert_frames(noted: Sequence[Sequence[Any]], frames: Mapping[int, FrameText]) -> tuple[Piece, ...]:
    """Return the pieces of a document, with those of its frames inserted in text order.

    ``noted``: result of the script ``text_places``. ``frames``: the readable frames, by number.
    """
    found: list[Piece] = []
    for entry in noted:
        if isinstance(entry[0], int):
            if entry[0] in frames:
                found += _on_page(frames[entry[0]], _hole(entry))
            continue
        begins, length, lines = entry
        found.append(Piece(begins=str(begins), length=int(length), lines=tuple(Line(*line) for line in lines)))
    return tuple(found)


def _hole(entry: Sequence[Any]) -> _Hole:
    _, (left, top, width, height), shown = entry
    return _Hole(left=left, top=top, width=width, height=height, shown=tuple(shown))


def _on_page(framed: FrameText, hole: _Hole) -> Sequence[Piece]:
    if framed.view.width <= 0 or framed.view.height <= 0:
        return ()
    return [
        replace(piece, framed=True, lines=tuple(_through(line, framed.view, hole) for line in piece.lines))
        for piece in framed.pieces
    ]


def _through(line: Line, view: Viewport, hole: _Hole) -> Line:
    """Convert a line of the frame to page coordinates. The width is 0 if its centre is not visible."""
    across, down = hole.width / view.width, hole.height / view.height
    left = hole.left + (line.left - view.left) * across
    top = hole.top + (line.top - view.top) * down
    right, bottom = left + line.width * across, top + line.height * down
    least_left, least_top, most_right, most_bottom = hole.shown
    x, y = (left + right) / 2, (top + bottom) / 2
    if line.width <= 0 or not (least_left <= x < most_right and least_top <= y < most_bottom):
        return Line(line.start, 0, 0, 0, 0)
    left, top = max(left, least_left), max(top, least_top)
    return Line(line.start, left, top, min(right, most_right) - left, min(bottom, most_bottom) - top)
