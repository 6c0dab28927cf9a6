"""Location of quotes in a page's text. Code alone decides whether a quote occurs there; no model is involved.

A quote counts if it is long or specific enough, occurs in the page verbatim, does not begin or end inside a word or
number, and leaves out no negation of its sentences (``judges.grounding.negation``).

A quote with an ellipsis ("A ... B") is found if all its parts occur in the page in order, within one paragraph, list
item or table row. Each part becomes a separate quote, so that only quoted words count as evidence. Each part has at
least three words and twelve characters (a single name or number is not enough). Adjacent parts are at most ``MAX_GAP``
characters apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Final, TypeAlias

from cache.page_text.sentences import is_one_block
from judges.grounding.folding import LINE_END_HYPHEN, UNSPACED, FoldedText, fold, fold_marks
from judges.grounding.negation import leaves_out_negation
from judges.grounding.source_signals import url_texts
from rubrics.verdict import Quote

MAX_QUOTES: Final = 3
MAX_QUOTE_CHARS: Final = 2_000
MIN_CHARS: Final = 12
MIN_WORDS: Final = 3
MIN_NAME: Final = 5
"""Minimum letters of a single-word name."""
MAX_PARTS: Final = 4
"""Maximum parts of a quote with ellipses."""
MAX_GAP: Final = 2_000
"""Maximum characters between two parts of a quote with an ellipsis."""
MAX_OCCURRENCES: Final = 200
"""Maximum occurrences of one quote that are examined, for pages with many repetitions."""
MAX_SENTENCES: Final = 50
"""Maximum occurrences whose sentences are examined."""

Span: TypeAlias = tuple[int, int]
"""Start and end offsets in a text."""

_EDGES = " \t\n\"'.,;:!?*_\u2022\u2026"
_ELLIPSIS = re.compile(r"[\[(]? ?\.(?: ?\.){2,} ?[\])]?")
"""Three or more dots in folded text, optionally separated by spaces and in brackets."""
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")
_NAME_REST = re.compile(r"[\w'.-]+")
_NUMBER_MARKS = ".,'_\u00b7\u02d9\u2027\u2219\u22c5\u060c"
_NUMBER = re.compile(rf"\d{{1,3}}(?: \d{{3}}(?!\d))+(?:[{_NUMBER_MARKS}]\d+)*|\d+(?:[{_NUMBER_MARKS}]\d+)*")
"""Number with spaces between groups of three digits, or with marks between digits."""
_NUMBER_REACH: Final = 40
"""Characters before and after the edge of a quote that can belong to one number."""
_WORD_HYPHEN = re.compile(rf"(?<=[^\s\d!-/:-@])[{LINE_END_HYPHEN}-] ?(?=[^\s\d!-/:-@])")
_UNSPACED_SCRIPTS = 0x2E80
"""Code points from here on (CJK and neighbours) belong to scripts that do not separate words."""


def find_quotes(
    page: FoldedText, original: str, quotes: Sequence[str], *, page_id: str, url: str = ""
) -> tuple[Quote, ...]:
    """Return those of the first three ``quotes`` that occur in the page, with their offsets in ``original``.

    A quote with ellipses gives one entry per part.
    """
    located = [
        Quote(text=original[start:end], page_id=page_id, start=start, end=end)
        for quote in quotes[:MAX_QUOTES]
        for start, end in find_quote(page, quote, url=url)
    ]
    return tuple(dict.fromkeys(located))


def find_quote(page: FoldedText, quote: str, *, url: str = "") -> tuple[Span, ...]:
    """Return the spans of ``quote`` in the page's original text: one, or one per part; empty if it does not occur.

    A quote is rejected if it, or a part of it, occurs in the query, fragment or search path of the page's own URL,
    because the author of the link chose that text.
    """
    return _located(page, quote, url)[0]


def needs_whole_sentence(page: FoldedText, quotes: Sequence[str], *, url: str = "") -> bool:
    """Return whether no quote is found, but one would be if it did not leave out a negation or join paragraphs."""
    located = [_located(page, quote, url) for quote in quotes[:MAX_QUOTES]]
    return not any(spans for spans, _ in located) and any(occurs for _, occurs in located)


def _located(page: FoldedText, quote: str, url: str) -> tuple[tuple[Span, ...], bool]:
    """Return the spans of a quote as ``find_quote`` does, and whether its words occur in order."""
    if len(quote) > MAX_QUOTE_CHARS:
        return (), False
    folded, own_texts = fold(quote), url_texts([url])
    occurs = False
    # The page itself may contain an ellipsis, so the whole quote is searched first.
    for parts in dict.fromkeys(((_trimmed(folded.text, 0, len(folded.text)),), _parts(folded.text))):
        texts = [folded.text[start:end] for start, end in parts]
        if not 0 < len(texts) <= MAX_PARTS or any(
            not text or any(text in own_text for own_text in own_texts) for text in texts
        ):
            continue
        is_enough = is_substantial if len(parts) == 1 else _is_long_in_any_script
        if all(is_enough(quote[slice(*folded.span(*part))]) for part in parts):
            for spans in islice(_in_order(page.text, texts), MAX_SENTENCES):
                occurs = True
                if _is_one_block(page, spans) and not leaves_out_negation(page, spans):
                    return tuple(page.span(*span) for span in spans), True
    return (), occurs


def _is_one_block(page: FoldedText, spans: Sequence[Span]) -> bool:
    """Return whether everything between the parts of a quote belongs to one paragraph."""
    original = [page.span(*span) for span in spans]
    return all(is_one_block(page.original, end, start) for (_, end), (start, _) in pairwise(original))


def is_substantial(quote: str) -> bool:
    """Return whether a quote can prove anything.

    It is long, has three digits, has a digit and two words, or is a name.
    """
    if _is_long_in_any_script(quote):
        return True
    plain = fold_marks(quote).strip(_EDGES)
    words = _WORD.findall(plain)
    digits = sum(char.isdigit() for char in plain)
    return digits >= 3 or bool(digits and len(words) >= 2) or _is_name(plain)


def is_long(quote: str) -> bool:
    """Return whether a quote has three words and twelve characters."""
    plain = fold_marks(quote).strip(_EDGES)
    return len(plain) >= MIN_CHARS and len(_WORD.findall(plain)) >= MIN_WORDS


def _is_long_in_any_script(quote: str) -> bool:
    """Return whether a quote is long. Scripts that do not separate words need six characters."""
    return is_long(quote) or sum(map(_is_unspaced, quote)) >= MIN_CHARS // 2


def _is_name(plain: str) -> bool:
    """Return whether a text is several capitalised words, or one of at least five letters."""
    words = plain.split(" ")
    capitalised = all(word[:1].isupper() and _NAME_REST.fullmatch(word[1:]) for word in words)
    return capitalised and (len(words) > 1 or (len(plain) >= MIN_NAME and "." not in plain))


def _parts(folded: str) -> tuple[Span, ...]:
    """Return the spans of the parts between ellipses."""
    ellipses = [match.span() for match in _ELLIPSIS.finditer(folded)]
    starts, ends = [0, *(end for _, end in ellipses)], [*(start for start, _ in ellipses), len(folded)]
    parts = (_trimmed(folded, start, end) for start, end in zip(starts, ends, strict=True))
    return tuple((start, end) for start, end in parts if start < end)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return ``start`` and ``end`` without insignificant characters at the edges."""
    part = text[start:end]
    first = start + len(part) - len(part.lstrip(_EDGES))
    return first, max(first, start + len(part.rstrip(_EDGES)))


def _in_order(text: str, parts: Sequence[str]) -> Iterator[list[Span]]:
    """Yield the occurrences of the first part, each with the nearest occurrences of the others in order."""
    first, *others = (list(whole_occurrences(text, part)) for part in parts)
    for span in first:
        chain = [span]
        for spans in others:
            end = chain[-1][1]
            place = bisect_left(spans, (end, end))
            if place == len(spans) or spans[place][0] > end + MAX_GAP:
                break
            chain.append(spans[place])
        else:
            yield chain


def whole_occurrences(text: str, needle: str) -> Iterator[Span]:
    """Yield the spans of ``needle``, not empty, at which no word or number extends beyond its edges."""
    for start, end in _occurrences(text, needle):
        if _is_whole(text, start, end):
            yield start, end


def _occurrences(text: str, needle: str) -> Iterator[Span]:
    places = list(_places(text, needle))
    yield from ((place, place + len(needle)) for place in places)
    if places or LINE_END_HYPHEN not in text:
        return
    hyphens = [match.span() for match in _WORD_HYPHEN.finditer(text)]
    dropped = [0, *accumulate(end - start for start, end in hyphens)]
    joints = [start - before for (start, _), before in zip(hyphens, dropped, strict=False)]
    wanted = _WORD_HYPHEN.sub("", needle)
    for place in _places(_WORD_HYPHEN.sub("", text), wanted):
        start = place + dropped[bisect_right(joints, place)]
        end = place + len(wanted) - 1
        end += dropped[bisect_right(joints, end)] + 1
        if _differs_in_line_ends(text[start:end], needle):
            yield start, end


def _differs_in_line_ends(passage: str, quote: str) -> bool:
    """Return whether texts are equal if each hyphen at a line end is no hyphen, a hyphen, or a hyphen and a space."""
    quote, (first, *others) = quote.replace(LINE_END_HYPHEN, "-"), passage.split(LINE_END_HYPHEN)
    at = len(first) if quote.startswith(first) else -1
    for part in others:
        hyphen = next((each for each in ("- ", "-", "") if at >= 0 and quote.startswith(each + part, at)), None)
        at = -1 if hyphen is None else at + len(hyphen) + len(part)
    return at == len(quote)


def _places(text: str, needle: str) -> Iterator[int]:
    start = -1
    for _ in range(MAX_OCCURRENCES):
        start = text.find(needle, start + 1)
        if start < 0:
            return
        yield start


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether no word or number extends beyond the edges of ``text[start:end]``."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if (before and _joined(before[-1], text[start])) or (after and _joined(text[end - 1], after[0])):
        return False
    if text[start].isdigit() and before[-1:] == "-" and not before[:-1].strip():
        return False  # -5 is not 5
    return not (_is_in_number(text, start) or _is_in_number(text, end))


def _is_in_number(text: str, edge: int) -> bool:
    """Return whether a position is inside a number: 1,250 and 1 250 are not 250."""
    if not any(char.isdigit() for char in text[max(0, edge - 2) : edge]) or not any(
        char.isdigit() for char in text[edge : edge + 2]
    ):
        return False
    low, high = max(0, edge - _NUMBER_REACH), edge + _NUMBER_REACH
    return any(match.start() < edge < match.end() for match in _NUMBER.finditer(text, low, high))


def _joined(left: str, right: str) -> bool:
    """Return whether two adjacent characters belong to one word."""
    return left.isalnum() and right.isalnum() and not (_is_unspaced(left) or _is_unspaced(right))


def _is_unspaced(char: str) -> bool:
    return ord(char) >= _UNSPACED_SCRIPTS or UNSPACED.match(char) is not None
