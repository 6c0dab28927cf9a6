# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Division of a report into sentences, headings and table rows.

A mark after the full stop belongs to the sentence before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from answers.binding.layout import Block, LineKind
from answers.binding.references import FoundMark

LABELLED = re.compile(
    r"[ \t]*[*_]{0,3}[^\W\d_][^\n:：.!?。！？|\[\]<>]{0,40}"
    r"(?:\*{0,3}[:：](?!//)|[:：]\*{1,3})(?=[ \t*]|[^\x00-\x7f]|\d)"
)
"""Start of a statement of the form ``Label: value``."""
MAX_STATEMENT_CHARS = 2_000
"""A longer sentence is divided, so that the statements of many marks in one sentence take limited memory."""

Span = tuple[int, int]

_CLOSERS = r"[\"'”’»)\]）】」』》*_~`]{0,6}"
_END = re.compile(rf"[.!?…؟۔।॥]{{1,12}}{_CLOSERS}|[。！？；｡]{{1,12}}{_CLOSERS}|\n")
_WORD_BEFORE = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]{0,12}\Z")
_ABBREVIATIONS_TEXT = (
    "e.g i.e eg ie cf vs viz al approx ca est resp incl excl dr mr mrs ms prof rev hon sr jr st mt ft "
    "gen col sgt lt capt sen rep gov pres no nos nr fig figs eq eqs sec secs ch chap vol vols pp p pg "
    "para ed eds trans dept univ assn bros z.b d.h u.a bzw vgl abs art bd hrsg jan feb mar apr jun jul "
    "aug sep sept oct nov dec u.s u.k u.n e.u u.s.a ph.d m.d b.c a.d d.c min max avg sp spp env op cit "
    "ibid et adj "
)
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_TEXT.split())
_MAY_END = frozenset(["etc", "inc", "ltd", "co", "corp", "llc", "plc", "a.m", "p.m", "usw"])
_STARTERS_TEXT = (
    "The A An In It This That These Those However He She They We But And If When While For On At As By "
    "To From With After Before Although Since There Its Their Our His Her Such Some Many Most Moreover "
    "Furthermore Meanwhile "
)
_STARTERS = frozenset(_STARTERS_TEXT.split())
_NEXT_WORD = re.compile(r"(?:\[cite_start\]|[\s*_\"'“‘(\[])*((?!https?:|www\.)[^\W_]*)")
_LINE_IS_COMPLETE = (
    "。",
    "！",
    "？",
    "؟",
    "۔",
    "।",
    "：",
    ":",
    "；",
    ".",
    "!",
    "?",
    "**",
    "  ",
    "|",
    "\\",
    ">",
    "]",
    "】",
    ")",
    "）",
    "\r",
)


def sentences(text: str, block: Block, marks: Sequence[FoundMark]) -> Iterator[Span]:
    """Yield the span of each sentence, heading or table row of a block with its marks, in text order."""
    is_one = block.kind in {LineKind.TABLE, LineKind.HEADING}
    for start, end in [(block.start, block.end)] if is_one else _sentences(text, block, marks):
        yield from _divided(text, start, end)


def _sentences(text: str, block: Block, marks: Sequence[FoundMark]) -> Iterator[Span]:
    start, at, index = block.start, block.start, 0
    while (match := _END.search(text, at, block.end)) is not None:
        at = match.end()
        while index < len(marks) and marks[index].end <= match.start():
            index += 1
        if index < len(marks) and marks[index].start <= match.start():
            at = marks[index].end
            continue
        if not _is_boundary(text, match, block.end, marks, index):
            continue
        end, index = _after_marks(text, match.end(), block.end, marks, index)
        at = max(at, end)
        yield start, end
        start = end
    if start < block.end:
        yield start, block.end


def _after_marks(text: str, at: int, end: int, marks: Sequence[FoundMark], index: int) -> tuple[int, int]:
    """Return the position after the marks that follow the end of a sentence on the same line."""
    while index < len(marks) and marks[index].start < at:
        index += 1
    while index < len(marks) and marks[index].start < end:
        mark = marks[index]
        gap = text[at : mark.start]
        opened = gap.strip(" \t,;，、") in {"(", "（"}
        if len(gap) > 8 or (gap.strip(" \t,;，、") and not opened):
            break
        if not (mark.is_number or opened or _is_glued(text, mark)):
            break
        after = re.compile(r"[ \t]{0,3}[)）]").match(text, mark.end, end) if opened else None
        if opened and after is None:
            break
        at = after.end() if after is not None else mark.end
        closing = re.compile(r"[.。]?[*_]{0,3}(?=\s|\Z)").match(text, at, end)
        at = closing.end() if closing is not None else at
        index += 1
    return at, index


def _is_boundary(text: str, match: re.Match[str], end: int, marks: Sequence[FoundMark], index: int) -> bool:
    first, after = match[0][0], match.end()
    if first == "\n":
        line = text[text.rfind("\n", max(0, after - 80), match.start()) + 1 : match.start()]
        next_line = _NEXT_WORD.match(text, after, end)
        if next_line is not None and next_line[1][:1].islower():
            return False
        is_title = len(line) < 40 or LABELLED.match(line) is not None
        return line.endswith(_LINE_IS_COMPLETE) or (is_title and LABELLED.match(text, after, end) is not None)
    if after >= end:
        return True
    following = text[after]
    if first in "。！？；｡":  # a quotation within a Japanese sentence continues with a particle
        return not (match[0][-1] in "」』" and "\u3041" <= following <= "\u3096")
    mark = _mark_after(text, after, marks, index)
    if not following.isspace() and mark is None and not _is_wide(following):
        return False
    if first != "." or match[0].startswith(".."):
        return not (first == "…" or match[0].startswith("..")) or _next_is_capital(text, after, end)
    return _full_stop_ends(text, match.start(), after, end, mark)


def _mark_after(text: str, after: int, marks: Sequence[FoundMark], index: int) -> FoundMark | None:
    """Return the last of the marks that follow a full stop, if they are not the beginning of the next sentence."""
    if index >= len(marks) or not after <= marks[index].start <= after + 3:
        return None
    gap = text[after : marks[index].start]
    is_apart = marks[index].is_number or "(" in gap or "（" in gap or _is_glued(text, marks[index])
    if not is_apart or gap.strip(" \t(（"):
        return None
    while index + 1 < len(marks) and marks[index + 1].start == marks[index].end:
        index += 1
    return marks[index]


def _is_glued(text: str, mark: FoundMark) -> bool:
    """Return whether a link stands directly behind the text and before a space, as in ``rose.[Reuters](URL) It``."""
    before, after = text[mark.start - 1 : mark.start], text[mark.end : mark.end + 1]
    return text[mark.start] == "[" and before.isascii() and not before.isspace() and not after.strip(" \t\r\n[")


def _full_stop_ends(text: str, stop: int, after: int, end: int, mark: FoundMark | None) -> bool:
    before = _WORD_BEFORE.search(text, max(0, stop - 24), stop)
    word = before[0] if before is not None else ""
    following = _NEXT_WORD.match(text, after, end)
    next_word = following[1] if following is not None else ""
    key = word.lower()
    if mark is not None:
        following = _NEXT_WORD.match(text, mark.end, end)
        return key not in _ABBREVIATIONS and not (following is not None and following[1][:1].islower())
    if key in _ABBREVIATIONS or (len(word) == 1 and word.isupper()):
        return next_word in _STARTERS and key not in {"e.g", "i.e", "vs", "cf", "dr", "mr", "mrs", "ms", "prof", "st"}
    if key in _MAY_END:
        return next_word[:1].isupper()
    return not next_word[:1].islower()


def _next_is_capital(text: str, after: int, end: int) -> bool:
    following = _NEXT_WORD.match(text, after, end)
    return following is not None and (not following[1] or following[1][:1].isupper() or _is_wide(following[1][:1]))


def _is_wide(char: str) -> bool:
    """Return whether a character is Chinese, Japanese or Korean, so no space separates sentences."""
    return "\u2e80" <= char <= "\uffef"


_ONLY_TAGS = re.compile(r"(?>(?:</?[A-Za-z][\w-]{0,20}(?:\s[^<>\n]{0,300})?/?>\s*)+)")


def _divided(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield a span without surrounding white space, divided if it is too long. HTML tags alone are no sentence."""
    while start < end and (text[start].isspace() or text[start] == ">"):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > MAX_STATEMENT_CHARS:
        cut = text.rfind(" ", start + MAX_STATEMENT_CHARS // 2, start + MAX_STATEMENT_CHARS) + 1
        cut = cut or start + MAX_STATEMENT_CHARS
        yield start, cut
        start = cut
    if start < end and not _ONLY_TAGS.fullmatch(text, start, end):
        yield start, end
