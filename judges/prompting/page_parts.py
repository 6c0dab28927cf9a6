"""Parts of a page whose text is too long for one request, the most relevant to a claim first. Pure functions.

A text is divided into passages. A part has as many of them as fit, in the order of the page: the first part those that
share the most terms with the claim, the next part those that follow. Each part also has the beginning of the page and
the headings above its passages. The same page, claim and limit always give the same parts, so that their requests
are cached.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from judges.grounding.closest_passage import relevance

MAX_PARTS: Final = 4
"""Maximum number of parts of a page that are shown for one claim."""
MAX_READ_CHARS: Final = 8_000_000
"""The rest of a longer text is not shown. Comparing a text of this length with a claim takes about three seconds."""
PASSAGE_CHARS: Final = 4_000
OVERLAP_CHARS: Final = 200
"""Characters before a passage that are shown with it: the claim may depend on both sides of a division."""
BEGINNING_CHARS: Final = 1_000
GAP: Final = "\n\n[...]\n\n"
PARTS_MARKER: Final = "\n[The page is long: these are parts of it, and [...] stands for text that is left out here.]"
"""Follows the text of a part."""

Span: TypeAlias = "tuple[int, int]"
_HEADING = re.compile(r"^#{1,6} [^\n]{1,200}$|(?<=\n\n)[^\n]{1,100}(?=\n\n)", re.MULTILINE)
_ENDS: Final = ("\n\n", "\n", ". ", " ")
"""Where a text is divided: the last of the first that occurs."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """Part of a page's text. ``spans`` are its ranges in the text, and ``starts`` where they begin in ``text``."""

    text: str
    spans: tuple[Span, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str, spans: Sequence[Span]) -> PagePart:
        """Return the part with these ranges of a text, which are sorted and do not overlap."""
        starts, at = [], 0
        for start, end in spans:
            starts.append(at)
            at += end - start + len(GAP)
        return cls(GAP.join(text[start:end] for start, end in spans), tuple(spans), tuple(starts))

    def locate(self, start: int, end: int) -> Span:
        """Return the range of the page's text that ``text[start:end]`` comes from."""
        place = max(0, bisect_right(self.starts, start) - 1)
        offset = self.spans[place][0] - self.starts[place]
        return start + offset, min(end + offset, self.spans[place][1])


def page_parts(
    text: str, claim: str, size_of: Callable[[int, int], int], limit: int
) -> tuple[tuple[PagePart, ...], bool]:
    """Return the parts of a text, the most relevant to a claim first, and whether they have all of the text.

    ``size_of`` returns the size of a range, of which a part may have ``limit`` together. CPU-bound: call it in a
    thread.
    """
    spans = _passages(text, min(len(text), MAX_READ_CHARS), min(PASSAGE_CHARS, limit // 4))
    headings = [match.span() for match in _HEADING.finditer(text, 0, MAX_READ_CHARS)]
    shown = [(max(0, start - min(OVERLAP_CHARS, limit // 16)), end) for start, end in spans]
    above = [_heading_above(headings, start) for start, _ in shown]
    scores = relevance(claim, text, spans)
    left = sorted(range(len(spans)), key=lambda place: (place > 0, -scores[place], place))  # the beginning comes first
    beginning = (0, min(BEGINNING_CHARS, limit // 8, len(text)))
    gap = len(GAP)  # in characters: more than in tokens
    parts: list[PagePart] = []
    while left and len(parts) < MAX_PARTS:
        room, count = limit - size_of(*beginning) - gap, 0
        for place in left:
            room -= size_of(*shown[place]) + gap + sum(size_of(*heading) + gap for heading in above[place])
            if room < 0 and count:
                break
            count += 1
        chosen = [span for place in left[:count] for span in (shown[place], *above[place])]
        parts.append(PagePart.of(text, _merged([beginning, *chosen])))
        left = left[count:]
    return tuple(parts), not left and len(text) <= MAX_READ_CHARS


def _heading_above(headings: Sequence[Span], start: int) -> tuple[Span, ...]:
    """Return the last heading before a place of the text, if any."""
    place = bisect_left(headings, (start, start))
    return (headings[place - 1],) if place else ()


def _passages(text: str, end: int, max_chars: int) -> list[Span]:
    """Return the ranges of the passages of ``text[:end]``, divided between paragraphs, lines, sentences or words."""
    spans: list[Span] = []
    start = 0
    while end - start > max_chars:
        earliest, latest = start + max_chars // 2, start + max_chars
        found = ((text.rfind(mark, earliest, latest), mark) for mark in _ENDS)
        cut = next((at + len(mark) for at, mark in found if at >= 0), latest)
        spans.append((start, cut))
        start = cut
    return [*spans, (start, end)] if start < end else spans


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return the union of ranges, sorted."""
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union
