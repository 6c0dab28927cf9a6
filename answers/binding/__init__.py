"""Binding of the citation marks of a report to their sources and to the statements that they support.

Pure functions on a text, in linear time and memory. In an event loop, run them in a thread. The forms of marks and
reference lists are in ``docs/check.md``; the reasons for an own scanner are in decision 57.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from answers.binding.layout import Block, LineKind, read_layout
from answers.binding.marks import MAX_MARKS, FoundMark, find_marks
from answers.binding.references import Entry, References, title_of
from answers.binding.statements import sentences, statements
from answers.citations import Citation, CitationKind, citations
from answers.errors import TooManyParts

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
