"""Positions of quotes in the screenshots of a page, computed from the boxes of its text lines. Pure functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_BOXES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Rectangle in a screenshot. The full width and height of the screenshot are ``Places.unit`` each."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Boxes of quotes by screenshot number.

    ``top`` is the first screenshot with a box, and the vertical position of its topmost box (0 to 1); None: no position
    is known.
    """

    unit: int
    boxes: Mapping[int, Sequence[Box]]
    top: tuple[int, float] | None


def places_of(known: Mapping[str, Any] | None, spans: Sequence[tuple[int, int]]) -> Places:
    """Return the boxes of the lines that contain ``spans``. Lines are cut where a span begins or ends.

    Positions within a line are estimated as if all characters had the same width.
    """
    lines: Sequence[Sequence[int]] = (known or {}).get("lines") or ()
    unit = int((known or {}).get("unit") or 1)
    starts = [line[0] for line in lines]
    found: dict[int, list[Box]] = {}
    for low, high in spans:
        at = max(0, bisect_right(starts, low) - 1)
        for start, end, screenshot, *box in lines[at : at + _MOST_BOXES]:
            if start >= high:
                break
            if end > low:
                found.setdefault(screenshot, []).append(_cut(start, end, box, low, high))
    first = min(found, default=None)
    top = None if first is None else (first, min(box.top for box in found[first]) / unit)
    return Places(unit=unit, boxes=found, top=top)


def _cut(start: int, end: int, box: Sequence[int], low: int, high: int) -> Box:
    left, top, width, height = box
    each = width / max(1, end - start)
    begins, ends = max(start, low) - start, min(end, high) - start
    return Box(left=left + round(begins * each), top=top, width=max(1, round((ends - begins) * each)), height=height)
