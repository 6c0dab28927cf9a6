# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Division of a report into sentences, headings and table rows.

A mark after the full stop belongs to the sentence before it. All functions take the text of ``masked_text``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from answers.binding.layout import Line, LineKind
from answers.binding.marks import MARKS, NUMBER
from answers.citations import HTML_TAG

LABELLED = re.compile(
    r"[ \t]*[*_]{0,3}[^\W\d_][^\n:：.!?。！？|\[\]<>]{0,40}"
    r"(?:\*{0,3}[:：](?!//)|[:：]\*{1,3})(?=[ \t*]|[^\x00-\x7f]|\d)"
)
"""Start of a statement of the form ``Label: value``."""
MAX_STATEMENT_CHARS = 2_000
"""A longer sentence is divided, so that the statements of many marks in one sentence take limited memory."""

Span = tuple[int, int]

_CLOSERS = r"[\"'”’»)\]）】」』》*_~`]{0,6}"
_NOTE = r"\[(?:[a-z]{1,2}|note \d{1,3}|citation needed)\]"
"""Mark of a note or remark, as in copies of Wikipedia."""
_PAGE = r"(?::[ \t]?\d{1,3}(?:[–-]\d{1,3})?(?=\s|\Z))?"
_MARK = (
    rf"(?:[(（][ \t]{{0,2}}[{MARKS}]+[ \t]{{0,3}}[)）]|(?:{NUMBER}|{_NOTE})+{_PAGE})"
    r"(?:[.。]?[*_]{0,3}(?=\s|\Z))?"
)
_END = re.compile(
    rf"(?P<stop>(?:[.!?…؟۔।॥]{{1,12}}|[。！？；｡]{{1,12}}){_CLOSERS})"
    rf"(?P<marks>(?:[ \t]{{0,3}}{_MARK}(?:[ \t,;，、]{{0,8}}{_MARK})*[)）\]」』”’»]{{0,3}})?)"
    r"|\n(?P<blank>\n*)"
)
"""End of a sentence with the marks that follow it, or of a line."""
_SYMBOL = re.compile(r"[ \t]*[\u2190-\u2bff\U0001f000-\U0001faff]")
"""Emoji or arrow, which begins the lines of a list without list markers."""
_WORD_BEFORE = re.compile(r"(?P<number>[\d°])?(?P<word>(?:[^\W\d_]\.)*[^\W\d_]{0,12})\Z")
_ABBREVIATIONS_TEXT = (
    "e.g i.e eg ie cf vs viz al approx ca est resp incl excl dr mr mrs ms prof rev hon sr jr st mt ft "
    "gen col sgt lt capt sen rep gov pres no nos nr fig figs eq eqs sec secs ch chap vol vols pp p pg "
    "para ed eds trans dept univ assn bros z.b d.h u.a bzw vgl abs art bd hrsg jan feb mar apr jun jul "
    "aug sep sept oct nov dec u.s u.k u.n e.u u.s.a ph.d m.d b.c a.d d.c min max avg sp spp env op cit "
    "ibid et adj mär mrz okt dez rd mio mrd tsd ggf inkl aprox"
)
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_TEXT.split())
_ORDINAL = re.compile(r"(?<![\d.,])\d{1,2}\Z")
_AFTER_ORDINAL = re.compile(
    "Jan|Feb|Mär|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrhundert|Quartal|Halbjahr|Weltkrieg"
)
"""Month or noun after a German ordinal number, as in ``3. Oktober``."""
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
    *MARKS,
)


def sentences(text: str, block: Line) -> Iterator[Span]:
    """Yield the span of each sentence, heading or table row of a block with its marks, in text order."""
    start = block.start
    for match in () if block.kind in {LineKind.TABLE, LineKind.HEADING} else _END.finditer(text, start, block.end):
        if _is_boundary(text, match, block.end):
            yield from _divided(text, start, match.end())
            start = match.end()
    yield from _divided(text, start, block.end)


def _is_boundary(text: str, match: re.Match[str], end: int) -> bool:
    stop, after = match["stop"], match.end()
    following = _NEXT_WORD.match(text, after, end)
    next_word = following[1] if following is not None else ""
    is_lower = next_word[:1].islower()
    if stop is None:
        line = text[text.rfind("\n", max(0, after - 80), match.start()) + 1 : match.start()]
        is_title = len(line) < 40 or LABELLED.match(line) is not None
        is_item = _SYMBOL.match(text, after, end) is not None or (
            is_title and LABELLED.match(text, after, end) is not None
        )
        is_complete = line.endswith(_LINE_IS_COMPLETE) or is_item
        return bool(match["blank"]) or (is_complete and not is_lower)
    next_char = text[match.end("stop") : end][:1]
    if stop[0] in "。！？；｡":  # a quotation within a Japanese sentence continues with a particle
        return not (stop[-1] in "」』" and "\u3041" <= next_char <= "\u3096")
    if next_char and not (next_char.isspace() or match["marks"] or _is_wide(next_char)):
        return False
    if stop[0] == "…" or stop.startswith(".."):
        return after == end or not next_word or next_word[0].isupper() or _is_wide(next_word[0])
    if stop[0] != "." or after == end:
        return not is_lower
    before = _WORD_BEFORE.search(text, max(0, match.start() - 24), match.start())
    word, is_unit = ("", False) if before is None else (before["word"], before["number"] is not None)
    key = word.lower()
    if match["marks"]:
        return key not in _ABBREVIATIONS and not is_lower
    if _AFTER_ORDINAL.match(next_word) and _ORDINAL.search(text, max(0, match.start() - 4), match.start()):
        return False
    if key in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and not is_unit):
        return next_word in _STARTERS and key not in {"e.g", "i.e", "vs", "cf", "dr", "mr", "mrs", "ms", "prof", "st"}
    return next_word[:1].isupper() if key in _MAY_END else not is_lower


def _is_wide(char: str) -> bool:
    """Return whether a character is Chinese, Japanese or Korean, so no space separates sentences."""
    return "\u2e80" <= char < "\ue000" or "\uf900" <= char <= "\uffef"


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
    if HTML_TAG.sub("", text[start:end]).strip():
        yield start, end
