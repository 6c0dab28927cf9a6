"""Where quotes stand in a page's screenshots, from the boxes of its lines. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_BOXES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A part of a picture, in parts of it: its width and height have ``unit``."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The boxes of quotes, by the number of the picture. ``top`` is the first of them, and how far down that is (0 to
    1); None: no place is known."""

    unit: int
    boxes: Mapping[int, Sequence[Box]]
    top: tuple[int, float] | None


def places_of(known: Mapping[str, Any] | None, spans: Sequence[tuple[int, int]]) -> Places:
    """Where the lines are that hold ``spans`` of the text; a line that a span begins or ends in is cut there.

    Where in a line a character stands is reckoned from how far along it comes, as if all were equally wide.
    """
    lines: Sequence[Sequence[int]] = (known or {}).get("lines") or ()
    unit = int((known or {}).get("unit") or 1)
    starts = [line[0] for line in lines]
    found: dict[int, list[Box]] = {}
    for low, high in spans:
        at = max(0, bisect_right(starts, low) - 1)
        for start, end, picture, *box in lines[at : at + _MOST_BOXES]:
            if start >= high:
                break
            if end > low:
                found.setdefault(picture, []).append(_cut(start, end, box, low, high))
    first = min(found, default=None)
    top = None if first is None else (first, min(box.top for box in found[first]) / unit)
    return Places(unit=unit, boxes=found, top=top)


def _cut(start: int, end: int, box: Sequence[int], low: int, high: int) -> Box:
    left, top, width, height = box
    each = width / max(1, end - start)
    begins, ends = max(start, low) - start, min(end, high) - start
    return Box(left=left + round(begins * each), top=top, width=max(1, round((ends - begins) * each)), height=height)
