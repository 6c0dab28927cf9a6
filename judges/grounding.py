"""Whether a quote really stands in a page. Decided by code alone: no model is asked and none is believed.

A quote counts when it is long or telling enough, stands in the page's own text word for word, and was not
cut so that it says something else: no digit and no "not" may be lost at its edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from judges.folding import FoldedText, fold
from judges.source_marks import echoes
from rubrics.verdict import Quote

MAX_QUOTES: Final = 3
MAX_QUOTE_CHARS: Final = 2_000
MIN_CHARS: Final = 12
MIN_WORDS: Final = 3
MAX_PLACES: Final = 200
"""Places of one quote that are looked at: in a page of repetitions the first ones do."""
NEGATION_REACH: Final = 4
"""Words before a quote that are searched for a negation."""

_NEGATIONS = frozenset(
    {
        *("not", "no", "never", "none", "neither", "nor", "cannot", "without", "hardly", "nobody", "nothing"),
        *("nicht", "kein", "keine", "keinen", "keiner", "nie", "ohne", "jamais", "sans", "nunca"),
    }
)
_EDGES = " \t\n\"'.,;:!?*_\u2022\u2026"
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")
_NAME = re.compile(r"(?:[A-Z][\w'.-]+\s+)+[A-Z][\w'.-]+|[A-Z][\w'-]{4,}")
_CLAUSE_END = re.compile(r"[.,;:!?()\"]\s|[\n|]")
_UNSPACED_SCRIPTS = 0x2E80
"""Code points from here on (CJK and its neighbours) belong to scripts that do not part words."""


def find_quotes(
    page: FoldedText, original: str, quotes: Sequence[str], *, page_id: str, url: str = ""
) -> tuple[Quote, ...]:
    """Those of the first three ``quotes`` that stand in the page, with their places in ``original``."""
    found: list[Quote] = []
    for quote in quotes[:MAX_QUOTES]:
        place = find_quote(page, quote, url=url)
        if place is not None:
            start, end = place
            found.append(Quote(text=original[start:end], page_id=page_id, start=start, end=end))
    return tuple(dict.fromkeys(found))


def find_quote(page: FoldedText, quote: str, *, url: str = "") -> tuple[int, int] | None:
    """The place in the page's original text (start, end) where ``quote`` stands whole; None where it does not.

    What the address of the page itself carries in its query is the asker's, not the page's, and does not count.
    """
    if len(quote) > MAX_QUOTE_CHARS or not is_telling(quote.strip(_EDGES)):
        return None
    wanted = fold(quote).text.strip(_EDGES)
    if not wanted or any(wanted in echo for echo in echoes([url])):
        return None
    for start in _places(page.text, wanted):
        end = start + len(wanted)
        if _is_whole(page.text, start, end) and not _loses_negation(page.text, start):
            return page.span(start, end)
    return None


def is_telling(quote: str) -> bool:
    """Whether a quote could prove anything: three words of twelve characters, a number, or a name."""
    words = _WORD.findall(quote)
    if len(quote) >= MIN_CHARS and len(words) >= MIN_WORDS:
        return True
    digits = sum(char.isdigit() for char in quote)
    if digits >= 3 or (digits and len(words) >= 2) or _NAME.fullmatch(quote):
        return True
    return sum(ord(char) >= _UNSPACED_SCRIPTS for char in quote) >= MIN_CHARS // 2


def _places(text: str, wanted: str) -> Iterator[int]:
    start = -1
    for _ in range(MAX_PLACES):
        start = text.find(wanted, start + 1)
        if start < 0:
            return
        yield start


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word or number goes on beyond the edges of ``text[start:end]``."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if (before and _joined(before[-1], text[start])) or (after and _joined(text[end - 1], after[0])):
        return False
    if text[start].isdigit():
        # 1,250 is not 250, and -5 is not 5.
        if before[-1:] in {".", ","} and before[:1].isdigit():
            return False
        if before[-1:] == "-" and not before[:-1].strip():
            return False
    return not (text[end - 1].isdigit() and after[:1] in {".", ","} and after[1:2].isdigit())


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    if ord(left) >= _UNSPACED_SCRIPTS or ord(right) >= _UNSPACED_SCRIPTS:
        return False
    return left.isalnum() and right.isalnum()


def _loses_negation(text: str, start: int) -> bool:
    """Whether a "not" stands before the quote in the same clause."""
    before = text[max(0, start - 80) : start]
    clause = _CLAUSE_END.split(before)[-1]
    return any(word in _NEGATIONS or word.endswith("n't") for word in _WORD.findall(clause)[-NEGATION_REACH:])
