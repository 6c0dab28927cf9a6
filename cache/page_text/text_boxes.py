"""Where a page's text stands in its pictures: a box for each line, found at the time of capture and kept as JSON. Pure.

A renderer tells pieces of text in reading order, each with its lines; which stretch of the page's text a piece is, is
found by its beginning. What is not found has no place: better none than a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

VERSION = 1
UNIT = 10_000
"""Boxes are in parts of their picture's width and height, which has this many."""
MAX_LINES = 20_000
_NEAR_CHARS = 400
_TELLING_CHARS = 24
"""A beginning of this length is found wherever it comes next, a shorter one only nearby."""


class Line(NamedTuple):
    """One line of a piece: where in the piece it begins (characters), and its box; no width: it cannot be seen."""

    start: int
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of text on one picture: how it begins, how long it is, and its lines; ``framed``: an inner frame's."""

    begins: str
    length: int
    lines: tuple[Line, ...]
    framed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One picture: its number, and the part of the surface that it shows, in the units of the lines."""

    number: int
    top: float
    width: float
    height: float


def places_json(text: str, shown: Iterable[tuple[Sequence[Sheet], Sequence[Piece]]]) -> bytes | None:
    """The boxes of a page's text for keeping: ``[start, end, picture, left, top, width, height]`` each, by start.

    ``shown`` are surfaces in the order of the text, each with the pictures of it. None where no place was found.
    Blocks for some milliseconds a megabyte.
    """
    lines: list[list[int]] = []
    cursor = 0
    for sheets, pieces in shown:
        for start, piece in aligned(text, pieces, cursor):
            cursor = start
            lines += _boxes(start, piece, sheets)
            if len(lines) >= MAX_LINES:
                break
    if not lines:
        return None
    return json.dumps({"version": VERSION, "unit": UNIT, "lines": lines[:MAX_LINES]}, separators=(",", ":")).encode()


def aligned(text: str, pieces: Iterable[Piece], cursor: int) -> Iterator[tuple[int, Piece]]:
    """Where in the text each piece begins. Pieces come in its order, so each is looked for behind the one before."""
    for piece in pieces:
        begins = piece.begins.partition("\n")[0].rstrip()
        if not begins:
            continue
        far = len(begins) >= _TELLING_CHARS
        start = text.find(begins, cursor, len(text) if far else cursor + _NEAR_CHARS + len(begins))
        if start >= 0:
            yield start, piece
            # Of a piece on several lines of the text, blanks at their ends were left out of it.
            whole = "\n" not in text[start : start + piece.length]
            cursor = start + (piece.length if whole else len(begins))


def _boxes(start: int, piece: Piece, sheets: Sequence[Sheet]) -> Iterator[list[int]]:
    ends = [line.start for line in piece.lines[1:]] + [piece.length]
    for line, end in zip(piece.lines, ends, strict=True):
        sheet = sheet_of(line, sheets)
        if sheet is None or end <= line.start:
            continue
        left, right = _part(line.left / sheet.width), _part((line.left + line.width) / sheet.width)
        top = _part((line.top - sheet.top) / sheet.height)
        bottom = _part((line.top - sheet.top + line.height) / sheet.height)
        yield [start + line.start, start + end, sheet.number, left, top, right - left, bottom - top]


def sheet_of(line: Line, sheets: Sequence[Sheet]) -> Sheet | None:
    """The picture that shows the middle of a line."""
    middle = line.top + line.height / 2
    across = line.left + line.width / 2
    if line.width <= 0 or line.height <= 0:
        return None
    return next((one for one in sheets if one.top <= middle < one.top + one.height and 0 <= across < one.width), None)


def _part(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * UNIT)
