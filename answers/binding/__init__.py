# ruff: noqa: RUF001 - punctuation and digits of other scripts
"""Binding of the citation marks of a report to their sources and to the statements that they support.

A mark after the full stop belongs to the sentence before it. A line that consists of marks supports the sentence before
that line.

Pure functions on a text, in linear time and memory. In an event loop, run them in a thread. The forms of marks and
reference lists are in ``docs/check.md``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from answers.binding.layout import Block, LineKind, is_delimiter, read_layout
from answers.binding.marks import MAX_MARKS, FoundMark, find_marks
from answers.binding.references import Entry, References, title_of
from answers.citations import Citation, CitationKind, citations
from answers.errors import TooManyParts

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
_NEXT_WORD = re.compile(r"[\s*_\"'“‘(\[]*([^\W_]*)")
_ONLY_LABEL = re.compile(
    r"(?:[\W\d_]|\b(?:sources?|see|see also|via|from|references?|refs?|citations?|and|quelle|fuente"
    r"|来源|出典|参考|引用|资料来源|参见|见)\b|来源|出典|参考|引用|参见)*",
    re.I,
)
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


def statements(text: str, spans: Sequence[tuple[Span, Block]], marks: Sequence[FoundMark]) -> list[Span]:
    """Return the span of the statement for each mark, in the order of the marks. ``spans`` are all sentences."""
    found: list[Span] = []
    starts = [span[0] for span, _ in spans]
    supported = _with_words(text, spans, marks)
    for mark in marks:
        index = max(0, bisect_right(starts, mark.start) - 1)
        found.append(supported[index] if supported else (mark.start, mark.end))
    return found


def _with_words(text: str, spans: Sequence[tuple[Span, Block]], marks: Sequence[FoundMark]) -> list[Span]:
    """Replace each sentence that has no words besides its marks by the sentence before it."""
    result: list[Span] = []
    before: Span | None = None
    first = 0
    for span, block in spans:
        while first < len(marks) and marks[first].end <= span[0]:
            first += 1
        at, inside, has_words = span[0], first, False
        while inside < len(marks) and marks[inside].start < span[1]:
            has_words = has_words or not _is_empty(text, at, marks[inside].start)
            at = max(at, marks[inside].end)
            has_words = has_words or (not marks[inside].is_number and _is_prose(text, marks[inside]))
            inside += 1
        has_words = has_words or not _is_empty(text, at, span[1])
        if block.kind is LineKind.ITEM and not has_words:  # a list of links, unless "Source:" is before the link
            link = first < len(marks) and not marks[first].is_number
            has_words = link and not any(map(str.isalpha, text[span[0] : marks[first].start]))
        if has_words or before is None or block.kind is LineKind.TABLE:
            result.append(span)
            is_title = block.kind is LineKind.HEADING or (block.kind is LineKind.TABLE and is_delimiter(text, *span))
            before = before if is_title else span
        else:
            result.append(before)
    return result


def _is_empty(text: str, start: int, end: int) -> bool:
    return end - start < 60 and _ONLY_LABEL.fullmatch(text, start, max(start, end)) is not None


def _is_prose(text: str, mark: FoundMark) -> bool:
    """Return whether the label of a link is a statement and not the name of a source."""
    return text[mark.start] == "[" and text.count(" ", mark.start, text.find("](", mark.start, mark.end)) > 7


def sentences(text: str, blocks: Sequence[Block], marks: Sequence[FoundMark]) -> Iterator[tuple[Span, Block]]:
    """Yield the span of each sentence, heading and table row, with its block, in text order."""
    index = 0
    for block in blocks:
        while index < len(marks) and marks[index].end <= block.start:
            index += 1
        end_index = index
        while end_index < len(marks) and marks[end_index].start < block.end:
            end_index += 1
        if block.kind in {LineKind.TABLE, LineKind.HEADING}:
            yield from ((span, block) for span in _divided(text, block.start, block.end))
        else:
            for start, end in _sentences(text, block, marks[index:end_index]):
                yield from ((span, block) for span in _divided(text, start, end))
        index = end_index


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
        line = text[max(0, match.start() - 4) : match.start()]
        next_line = _NEXT_WORD.match(text, after, end)
        return line.endswith(_LINE_IS_COMPLETE) and not (next_line is not None and next_line[1][:1].islower())
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


__all__ = ["MAX_MARKS", "Binding", "LineKind", "Mark", "Sentence", "Source", "bind"]

MAX_LINKS = 30_000
MAX_SENTENCES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Citation mark and one of its sources. ``text[start:end]`` is the mark, in characters.

    A mark with several numbers, such as ``[2-4]``, is one ``Mark`` per number, with the same span.
    """

    start: int
    end: int
    source: int | None
    """Index of the source, or None if the mark refers to nothing in the report."""
    statement_start: int
    statement_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Cited page, or entry of a reference list without a URL. ``start`` is its first position in the text."""

    url: str | None
    title: str
    start: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence, heading or table row outside of reference lists: ``text[start:end]``."""

    start: int
    end: int
    kind: LineKind


@dataclass(frozen=True, slots=True)
class Binding:
    """Marks of ``text`` in text order, and its sources: first those of reference lists, then other links."""

    text: str
    marks: tuple[Mark, ...]
    sources: tuple[Source, ...]
    sentences: tuple[Sentence, ...]

    def unbound(self) -> tuple[Mark, ...]:
        """Return the marks without a source."""
        return tuple(mark for mark in self.marks if mark.source is None)

    def unused(self) -> tuple[Source, ...]:
        """Return the sources that no mark refers to."""
        used = {mark.source for mark in self.marks}
        return tuple(source for index, source in enumerate(self.sources) if index not in used)


def bind(text: str) -> Binding:
    """Return all citation marks of a report with their sources and statements.

    Raises:
        TooManyParts: There are more than ``MAX_MARKS``, ``MAX_LINKS``, ``MAX_LINES`` or ``MAX_SENTENCES``.
    """
    layout = read_layout(text)
    cited = [each for each in citations(text) if not layout.masked[each.start]]
    if len(cited) > MAX_LINKS:
        raise TooManyParts(MAX_LINKS, "links")
    in_text = [each for each in cited if each.kind is not CitationKind.IMAGE]
    references = References(text, layout, [each for each in in_text if each.kind is not CitationKind.REFERENCE])
    found = find_marks(text, in_text, references, layout.masked)
    sources = _Sources(references.entries)
    for mark in found:
        for target in mark.targets:
            if isinstance(target, Citation):
                sources.add_link(target)
    blocks = list(_without(layout.blocks, _list_spans(text, references, cited)))
    found_sentences = list(islice(sentences(text, blocks, found), MAX_SENTENCES + 1))
    if len(found_sentences) > MAX_SENTENCES:
        raise TooManyParts(MAX_SENTENCES, "sentences")
    marks = tuple(_marks(found, statements(text, found_sentences, found), sources))
    outside = tuple(Sentence(start, end, block.kind) for (start, end), block in found_sentences)
    return Binding(text, marks, tuple(sources.found), outside)


def _list_spans(text: str, references: References, cited: Sequence[Citation]) -> list[tuple[int, int]]:
    """Return the spans of reference lists, their titles, and link definitions, in text order."""
    spans = [(entry.start, entry.end) for entry in references.entries] + references.titles
    for each in cited:
        if each.kind is CitationKind.DEFINITION:
            line_end = text.find("\n", each.end)
            spans.append((text.rfind("\n", 0, each.start) + 1, line_end if line_end >= 0 else len(text)))
    return sorted(spans)


def _without(blocks: Sequence[Block], spans: Sequence[tuple[int, int]]) -> Iterator[Block]:
    """Yield the parts of blocks outside of the spans, which may overlap."""
    first = 0
    for block in blocks:
        while first < len(spans) and spans[first][1] <= block.start:
            first += 1
        at, index = block.start, first
        while index < len(spans) and spans[index][0] < block.end:
            if spans[index][0] > at:
                yield block._replace(start=at, end=spans[index][0])
            at = max(at, spans[index][1])
            index += 1
        if at < block.end:
            yield block._replace(start=at)


def _marks(found: list[FoundMark], spans: list[tuple[int, int]], sources: _Sources) -> Iterator[Mark]:
    for mark, (start, end) in zip(found, spans, strict=True):
        for target in mark.targets:
            yield Mark(
                start=mark.start,
                end=mark.end,
                source=None if target is None else sources.index_of(target),
                statement_start=start,
                statement_end=end,
            )


class _Sources:
    """Distinct sources: one per URL, and one per entry without a URL."""

    def __init__(self, entries: list[Entry]) -> None:
        self.found: list[Source] = []
        self._by_url: dict[str, int] = {}
        self._by_start: dict[int, int] = {}
        for entry in entries:
            self._by_start[entry.start] = self._add(entry.url, entry.title, entry.start)

    def add_link(self, link: Citation) -> None:
        self._add(link.url, title_of(link.label, [link.label]), link.start)

    def index_of(self, target: Entry | Citation) -> int:
        if isinstance(target, Citation):
            return self._by_url[target.url]
        return self._by_start[target.start]

    def _add(self, url: str | None, title: str, start: int) -> int:
        known = self._by_url.get(url) if url is not None else None
        if known is not None:
            if title and not self.found[known].title:
                self.found[known] = Source(url=url, title=title, start=self.found[known].start)
            return known
        self.found.append(Source(url=url, title=title, start=start))
        index = len(self.found) - 1
        if url is not None:
            self._by_url[url] = index
        return index
