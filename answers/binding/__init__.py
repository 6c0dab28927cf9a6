"""Binding of the citation marks of a report to their sources and to the statements that they support.

Pure functions on a text, in linear time and memory. In an event loop, run them in a thread. The forms of marks and
reference lists are in ``docs/check.md``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from answers.binding.layout import LineKind, read_layout
from answers.binding.marks import MAX_MARKS, find_marks, masked_text, without_product_marks
from answers.binding.references import Entry, FoundMark, References, title_of
from answers.binding.scopes import Scopes
from answers.binding.sentences import LABELLED, Span, sentences
from answers.citations import Citation, CitationKind, citations
from answers.errors import TooManyParts

__all__ = [
    "LABELLED", "MAX_MARKS", "Binding", "LineKind", "Mark", "Sentence", "Source", "bind", "without_product_marks",
]  # fmt: skip

MAX_LINKS = 30_000
MAX_SENTENCES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Citation mark, one of its sources, and one statement. ``text[start:end]`` is the mark, in characters.

    A mark with several numbers, such as ``[2-4]``, is one ``Mark`` per number, with the same span. A mark that supports
    several statements, such as a line "Source: URL" below a list, is one ``Mark`` per statement.
    """

    start: int
    end: int
    source: int | None
    """Index of the source, or None if the mark refers to nothing in the report."""
    statement_start: int
    statement_end: int
    page: str = ""
    """Page of a document that the mark names, such as ``3-4``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Cited page, or entry of a reference list without a URL. ``start`` is its first position in the text."""

    url: str | None
    title: str
    start: int
    truncated: bool = False
    """Whether the report contains only the beginning of the URL, so the page cannot be opened."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence, heading or table row outside of lists and lines of sources: ``text[start:end]``."""

    start: int
    end: int
    kind: LineKind
    lead: Span | None = None
    """Title of its list, or the list item that contains it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Marks of ``text`` in text order, and all of its sources: first those of reference lists, then other URLs."""

    text: str
    marks: tuple[Mark, ...]
    sources: tuple[Source, ...]
    sentences: tuple[Sentence, ...]

    def unbound(self) -> tuple[Mark, ...]:
        """Return the marks without a source."""
        return tuple(mark for mark in self.marks if mark.source is None)

    def unused(self) -> tuple[Source, ...]:
        """Return the sources that are not bound to a statement."""
        used = {mark.source for mark in self.marks}
        return tuple(source for index, source in enumerate(self.sources) if index not in used)


def bind(text: str) -> Binding:
    """Return all citation marks of a report with their sources and statements.

    Raises:
        TooManyParts: There are more than ``MAX_MARKS``, ``MAX_LINKS``, ``MAX_LINES`` or ``MAX_SENTENCES``.
    """
    layout = read_layout(text)
    every = citations(text)
    if len(every) > MAX_LINKS:
        raise TooManyParts(MAX_LINKS, "links")
    cited = [each for each in every if not layout.masked[each.start]]
    no_source = {CitationKind.IMAGE, CitationKind.REFERENCE}
    links = [each for each in cited if each.kind not in no_source]
    references = References(text, layout, links)
    found = find_marks(text, cited, references, layout.masked)
    if not_used := references.untitled - {entry.place for entry in _entries(found)}:
        references = References(text, layout, links, without=not_used)
        found = find_marks(text, cited, references, layout.masked)
    lists = references.unused_lists(set(map(id, _entries(found))))
    plain = masked_text(text, found, _list_spans(text, references, cited))
    marks = found + [mark for listed in lists.values() for mark in listed]
    scopes = Scopes(plain, marks)
    has_one_list = len({entry.below for entry in references.entries}) == 1
    cited_urls = {target.url for mark in found for target in mark.targets if target is not None}
    starts, at = [mark.start for mark in found], len(found)
    parts = [(block, None) for block in layout.blocks] + list(lists.items())
    for block, links_of_list in sorted(parts, key=lambda each: each[0].start):
        if links_of_list is not None:
            is_only = has_one_list and not plain[block.start :].strip()
            urls = {each.url for mark in links_of_list for each in mark.targets if each is not None}
            listed = range(at, at := at + len(links_of_list))
            if not is_only or urls.isdisjoint(cited_urls):  # else it repeats the links of the report
                scopes.read_list(block, listed, is_only=is_only)
        elif spans := list(sentences(plain, block)):
            start, end = spans[0][0], spans[-1][1]
            inside = range(bisect_left(starts, start), bisect_left(starts, end))
            scopes.read(block._replace(start=start, end=end), spans, inside)
            if len(scopes.statements) > MAX_SENTENCES:
                raise TooManyParts(MAX_SENTENCES, "sentences")
    scopes.close()
    sources = _Sources(references.entries)
    bound = list(_marks(marks, scopes, sources))
    for each in every:
        sources.add_link(each)
    outside = tuple(Sentence(*each.span, each.kind, each.lead) for each in scopes.statements)
    return Binding(text, tuple(sorted(bound, key=lambda mark: mark.start)), tuple(sources.found), outside)


def _entries(marks: Iterable[FoundMark]) -> Iterator[Entry]:
    return (target for mark in marks for target in mark.targets if isinstance(target, Entry))


def _list_spans(text: str, references: References, cited: Sequence[Citation]) -> list[Span]:
    """Return the spans of reference lists, their titles, and link definitions."""
    spans = [(entry.start, entry.end) for entry in references.entries] + references.titles
    for each in cited:
        if each.kind is CitationKind.DEFINITION:
            line_end = text.find("\n", each.end)
            spans.append((text.rfind("\n", 0, each.start) + 1, line_end if line_end >= 0 else len(text)))
    return spans


def _marks(found: Sequence[FoundMark], scopes: Scopes, sources: _Sources) -> Iterator[Mark]:
    """Yield the marks. A URL without a statement is not a mark, but a number is: its statement is the number itself."""
    for mark, statements in zip(found, scopes.of_mark, strict=True):
        spans = [each.span for each in statements]
        for number, target in enumerate(mark.targets):
            source = None if target is None else sources.index_of(target)
            page = mark.pages[number % len(mark.pages)] if mark.pages else ""
            is_source = isinstance(target, Citation) or (target is not None and target.start <= mark.start < target.end)
            for start, end in spans or ([] if is_source else [(mark.start, mark.end)]):
                yield Mark(
                    start=mark.start, end=mark.end, source=source, statement_start=start, statement_end=end, page=page
                )


class _Sources:
    """Distinct sources: one per URL, and one per entry without a URL."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.found: list[Source] = []
        self._index: dict[str | int, int] = {}
        for entry in entries:
            self.index_of(entry)

    def add_link(self, link: Citation) -> int:
        has_title = link.kind not in {CitationKind.DEFINITION, CitationKind.FOOTNOTE}
        title = title_of("", [link.label] if has_title else [])
        return self._add(link.url, Source(url=link.url, title=title, start=link.start, truncated=link.truncated))

    def index_of(self, target: Entry | Citation) -> int:
        if isinstance(target, Citation):
            return self.add_link(target)
        is_cut = any(each.url == target.url and each.truncated for each in target.urls)
        source = Source(url=target.url, title=target.title, start=target.start, truncated=is_cut)
        return self._add(target.url or target.start, source)

    def _add(self, key: str | int, source: Source) -> int:
        index = self._index.setdefault(key, len(self.found))
        if index == len(self.found):
            self.found.append(source)
        elif source.title and not self.found[index].title:
            self.found[index] = replace(self.found[index], title=source.title)
        return index
