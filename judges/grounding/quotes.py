"""Location of quotes in a page's text. Code alone decides whether a quote occurs there; no model is involved.

A quote counts if it is long or specific enough, occurs in the page verbatim, and does not omit adjacent digits or a
preceding negation, which would change its meaning.

A quote with an ellipsis ("A ... B") is found if all its parts occur in the page in order. Each part becomes a separate
quote, so that only quoted words count as evidence. Because omissions can easily reverse the meaning, the rules for
parts are stricter. Each part has at least three words and twelve characters (a single name or number is not enough).
Adjacent parts are at most ``MAX_GAP`` characters apart. The omitted text contains no negation in the sentences that the
parts belong to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from judges.grounding.folding import FoldedText, fold, fold_marks
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
NEGATION_REACH: Final = 4
"""Number of words before a quote that are searched for a negation."""
NEGATION_WINDOW_CHARS: Final = 80

Span: TypeAlias = tuple[int, int]
"""Start and end offsets in a text."""

_NEGATIONS = frozenset(
    {
        *("not", "no", "never", "none", "neither", "nor", "cannot", "without", "hardly", "nobody", "nothing"),
        *("nicht", "kein", "keine", "keinen", "keiner", "nie", "ohne", "jamais", "sans", "nunca"),
    }
)
_EDGES = " \t\n\"'.,;:!?*_\u2022\u2026"
_ELLIPSIS = re.compile(r"[\[(]? ?\.(?: ?\.){2,} ?[\])]?")
"""Three or more dots in folded text, optionally separated by spaces and in brackets."""
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")
_NAME_REST = re.compile(r"[\w'.-]+")
_CLAUSE_END = re.compile(r"[.,;:!?()\"]\s|[\n|]")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s|[\u3002\uff01\uff1f]")
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
    if len(quote) > MAX_QUOTE_CHARS:
        return ()
    folded, own_texts = fold(quote), url_texts([url])
    # The page itself may contain an ellipsis, so the whole quote is searched first.
    for parts in dict.fromkeys(((_trimmed(folded.text, 0, len(folded.text)),), _parts(folded.text))):
        texts = [folded.text[start:end] for start, end in parts]
        if not 0 < len(texts) <= MAX_PARTS or any(
            not text or any(text in own_text for own_text in own_texts) for text in texts
        ):
            continue
        is_enough = is_substantial if len(parts) == 1 else _is_long_in_any_script
        if all(is_enough(quote[slice(*folded.span(*part))]) for part in parts):
            spans = _in_order(page.text, texts)
            if spans:
                return tuple(page.span(*span) for span in spans)
    return ()


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
    return is_long(quote) or sum(ord(char) >= _UNSPACED_SCRIPTS for char in quote) >= MIN_CHARS // 2


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


def _in_order(text: str, parts: Sequence[str]) -> list[Span]:
    """Return the first occurrence of each part, in order and with permitted gaps; empty if there is none."""
    *earlier, last = (list(_quoted_occurrences(text, part)) for part in parts)
    chains = [[span] for span in last]
    for spans in reversed(earlier):
        starts = [(chain[0][0], _negation_before(text, chain[0][0]), chain) for chain in chains]
        chains = []
        for span in spans:
            end, limit = span[1], min(span[1] + MAX_GAP, _negation_after(text, span[1]))
            nearest = next(
                (chain for start, negation_end, chain in starts if negation_end <= end <= start <= limit), None
            )
            if nearest is not None:
                chains.append([span, *nearest])
    return chains[0] if chains else []


def _negation_after(text: str, end: int) -> int:
    """Return the start of the first negation in the rest of the sentence, or the end of the text."""
    rest = _SENTENCE_END.split(text[end : end + MAX_GAP], maxsplit=1)[0]
    return next((end + word.start() for word in _WORD.finditer(rest) if _is_negation(word[0])), len(text))


def _negation_before(text: str, start: int) -> int:
    """Return the end of the last negation before ``start`` in its sentence, or 0."""
    window = text[max(0, start - MAX_GAP) : start]
    sentence = _SENTENCE_END.split(window)[-1]
    ends = [word.end() for word in _WORD.finditer(sentence) if _is_negation(word[0])]
    return start - len(sentence) + ends[-1] if ends else 0


def _quoted_occurrences(text: str, needle: str) -> Iterator[Span]:
    return (span for span in whole_occurrences(text, needle) if not _loses_negation(text, span[0]))


def whole_occurrences(text: str, needle: str) -> Iterator[Span]:
    """Yield the spans of ``needle``, not empty, at which no word or number extends beyond its edges."""
    for start in _occurrences(text, needle):
        end = start + len(needle)
        if _is_whole(text, start, end):
            yield start, end


def _occurrences(text: str, needle: str) -> Iterator[int]:
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
    if text[start].isdigit():
        # 1,250 is not 250, and -5 is not 5.
        if before[-1:] in {".", ","} and before[:1].isdigit():
            return False
        if before[-1:] == "-" and not before[:-1].strip():
            return False
    return not (text[end - 1].isdigit() and after[:1] in {".", ","} and after[1:2].isdigit())


def _joined(left: str, right: str) -> bool:
    """Return whether two adjacent characters belong to one word."""
    if ord(left) >= _UNSPACED_SCRIPTS or ord(right) >= _UNSPACED_SCRIPTS:
        return False
    return left.isalnum() and right.isalnum()


def _loses_negation(text: str, start: int) -> bool:
    """Return whether the quote omits a negation that precedes it in the same clause."""
    before = text[max(0, start - NEGATION_WINDOW_CHARS) : start]
    clause = _CLAUSE_END.split(before)[-1]
    return any(_is_negation(word) for word in _WORD.findall(clause)[-NEGATION_REACH:])


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")
