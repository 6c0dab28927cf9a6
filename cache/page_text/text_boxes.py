"""Text boxes: position of each line of a page's text in its screenshots, stored as JSON. Pure functions.

A renderer reports pieces of text in reading order, each with its lines. Each piece is located in the page's text by its
beginning. A piece that is not found gets no box, because no box is better than a wrong one.

The walker reports boxes of a frame in the coordinates of the frame's document. On the page they are offset by the
frame's position and scroll state, and visible only inside the visible part of the frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

VERSION = 1
BOX_UNITS = 10_000
"""Boxes are in fractions of the screenshot's width and height, in units of 1/10,000."""
MAX_LINES = 20_000
_NEAR_CHARS = 400
_UNIQUE_CHARS = 24
"""A piece whose beginning is shorter than this is only searched for nearby, because it may occur several times."""


class Line(NamedTuple):
    """One line of a piece: offset in the piece (characters) and box. A width of 0 means that it is not visible."""

    start: int
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of text in one screenshot: beginning, length and lines. ``in_frame``: it is in an inner frame."""

    beginning: str
    length: int
    lines: tuple[Line, ...]
    in_frame: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenshotArea:
    """One screenshot: its number and the part of the page that it shows, in the units of the lines."""

    number: int
    top: float
    width: float
    height: float


def places_json(text: str, shown: Iterable[tuple[Sequence[ScreenshotArea], Sequence[Piece]]]) -> bytes | None:
    """Return the boxes as JSON, sorted by start: ``[start, end, screenshot, left, top, width, height]`` each.

    ``shown``: rendered surfaces in text order, each with its screenshots and pieces.
    Returns None if there are no boxes. Blocks for some milliseconds per megabyte.
    """
    lines: list[list[int]] = []
    cursor = 0
    for areas, pieces in shown:
        for start, piece in locate_pieces(text, pieces, cursor):
            cursor = start
            lines += _boxes(start, piece, areas)
            if len(lines) >= MAX_LINES:
                break
    if not lines:
        return None
    return json.dumps(
        {"version": VERSION, "unit": BOX_UNITS, "lines": lines[:MAX_LINES]}, separators=(",", ":")
    ).encode()


def locate_pieces(text: str, pieces: Iterable[Piece], cursor: int) -> Iterator[tuple[int, Piece]]:
    """Find the offset of each piece in the text. Pieces are in text order, so each search starts after the last hit."""
    for piece in pieces:
        beginning = piece.beginning.partition("\n")[0].rstrip()
        if not beginning:
            continue
        is_unique = len(beginning) >= _UNIQUE_CHARS
        start = text.find(beginning, cursor, len(text) if is_unique else cursor + _NEAR_CHARS + len(beginning))
        if start >= 0:
            yield start, piece
            # Blanks at the line ends of a multi-line piece are missing in its length, so skip only its beginning.
            whole = "\n" not in text[start : start + piece.length]
            cursor = start + (piece.length if whole else len(beginning))


def _boxes(start: int, piece: Piece, areas: Sequence[ScreenshotArea]) -> Iterator[list[int]]:
    ends = [line.start for line in piece.lines[1:]] + [piece.length]
    for line, end in zip(piece.lines, ends, strict=True):
        area = find_area(line, areas)
        if area is None or end <= line.start:
            continue
        left, right = _to_units(line.left / area.width), _to_units((line.left + line.width) / area.width)
        top = _to_units((line.top - area.top) / area.height)
        bottom = _to_units((line.top - area.top + line.height) / area.height)
        yield [start + line.start, start + end, area.number, left, top, right - left, bottom - top]


def find_area(line: Line, areas: Sequence[ScreenshotArea]) -> ScreenshotArea | None:
    """Return the screenshot that shows the centre of a line."""
    middle = line.top + line.height / 2
    across = line.left + line.width / 2
    if line.width <= 0 or line.height <= 0:
        return None
    return next(
        (area for area in areas if area.top <= middle < area.top + area.height and 0 <= across < area.width), None
    )


def _to_units(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * BOX_UNITS)


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
class _FrameBox:
    """Content box of a frame on the page, in pixels of the page.

    ``shown``: visible part of the box (left, top, right, bottom).
    """

    left: float
    top: float
    width: float
    height: float
    shown: tuple[float, float, float, float]


def insert_frames(entries: Sequence[Sequence[Any]], frames: Mapping[int, FrameText]) -> tuple[Piece, ...]:
    """Return the pieces of a document, with those of its frames inserted in text order.

    ``entries``: result of the script ``text_boxes``. ``frames``: the readable frames, by number.
    """
    inserted: list[Piece] = []
    for entry in entries:
        if isinstance(entry[0], int):
            if entry[0] in frames:
                inserted += _pieces_on_page(frames[entry[0]], _frame_box(entry))
            continue
        beginning, length, lines = entry
        inserted.append(Piece(beginning=str(beginning), length=int(length), lines=tuple(Line(*line) for line in lines)))
    return tuple(inserted)


def _frame_box(entry: Sequence[Any]) -> _FrameBox:
    _, (left, top, width, height), visible_box = entry
    return _FrameBox(left=left, top=top, width=width, height=height, shown=tuple(visible_box))


def _pieces_on_page(frame: FrameText, frame_box: _FrameBox) -> Sequence[Piece]:
    if frame.view.width <= 0 or frame.view.height <= 0:
        return ()
    return [
        replace(piece, in_frame=True, lines=tuple(_to_page(line, frame.view, frame_box) for line in piece.lines))
        for piece in frame.pieces
    ]


def _to_page(line: Line, view: Viewport, frame_box: _FrameBox) -> Line:
    """Convert a line of the frame to page coordinates. The width is 0 if its centre is not visible."""
    across, down = frame_box.width / view.width, frame_box.height / view.height
    left = frame_box.left + (line.left - view.left) * across
    top = frame_box.top + (line.top - view.top) * down
    right, bottom = left + line.width * across, top + line.height * down
    least_left, least_top, most_right, most_bottom = frame_box.shown
    x, y = (left + right) / 2, (top + bottom) / 2
    if line.width <= 0 or not (least_left <= x < most_right and least_top <= y < most_bottom):
        return Line(line.start, 0, 0, 0, 0)
    left, top = max(left, least_left), max(top, least_top)
    return Line(line.start, left, top, min(right, most_right) - left, min(bottom, most_bottom) - top)
