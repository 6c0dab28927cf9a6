"""Location of words that a model marked in a claim. Code alone decides whether they occur there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from judges.grounding.folding import fold
from judges.grounding.quotes import Span, whole_occurrences

MAX_MARKED: Final = 50
"""Maximum number of marked passages of one claim."""


def locate_words(claim: str, marked: Sequence[str]) -> tuple[Span, ...] | None:
    """Return the spans of the ``marked`` passages in ``claim``, merged and in text order.

    A passage consists of whole words. If it occurs several times, the first occurrence that no earlier passage covers
    counts. Differences in case, spaces, quotation marks and dashes are ignored if there is no exact occurrence.

    None: there are too many passages, or one is empty or does not occur.

    >>> locate_words("Built in 1931 and opened in 1931", ["in 1931", "in 1931", "opened"])
    ((6, 13), (18, 32))
    >>> locate_words("Built in 1931", ["1932"]) is None
    True
    """
    if len(marked) > MAX_MARKED:
        return None
    found: list[Span] = []
    for passage in marked:
        occurrences = list(_occurrences(claim, passage.strip()))
        if not occurrences:
            return None
        found.append(next((span for span in occurrences if not _overlaps(span, found)), occurrences[0]))
    return _merged(claim, found)


def covers_all(claim: str, spans: Sequence[Span]) -> bool:
    """Return whether the spans contain all letters and digits of ``claim``."""
    inside = {at for start, end in spans for at in range(start, end)}
    return all(at in inside for at, char in enumerate(claim) if char.isalnum())


def _occurrences(claim: str, passage: str) -> Iterator[Span]:
    if not any(char.isalnum() for char in passage):
        return
    exact = list(whole_occurrences(claim, passage))
    yield from exact
    if not exact:
        folded, wanted = fold(claim), fold(passage).text.strip()
        yield from (folded.span(*span) for span in whole_occurrences(folded.text, wanted) if wanted)


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def _merged(claim: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the union of the spans. Spans with only white space between them become one."""
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and not claim[union[-1][1] : start].strip():
            union[-1] = union[-1][0], max(union[-1][1], end)
        else:
            union.append((start, end))
    return tuple(union)
