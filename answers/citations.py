"""Citations of an answer: links, references, footnotes and bare URLs with their positions.

Runs in linear time, about 0.1 s per MiB, so untrusted text is safe. In an event loop, run it in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from answers.report import MAX_LABEL_CHARS, MarkdownStructure, Span, reference_key
from answers.url_scan import URL_START, bare_end, clean, enclosed_end, link_end


class CitationKind(StrEnum):
    """How a URL is written."""

    LINK = "link"
    """``[label](url)``"""
    IMAGE = "image"
    """``![label](url)``"""
    AUTOLINK = "autolink"
    """``<url>``"""
    BARE = "bare"
    """In running text, a table cell or code, with or without its scheme."""
    DEFINITION = "definition"
    """``[label]: url``, the target of references."""
    REFERENCE = "reference"
    """``[text][label]`` or ``[label]``, with the URL of the definition."""
    FOOTNOTE = "footnote"
    """A bare URL in ``[^label]: ...``."""
    HTML = "html"
    """The value of an attribute, as in ``<a href="url">``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """URL in an answer, with its position.

    ``text[start:end]`` (in characters) is the URL as written, or the whole reference for ``REFERENCE``. ``label`` is
    the text of the link (first 300 characters) or the name of the definition or footnote, else empty.
    """

    url: str
    start: int
    end: int
    kind: CitationKind
    label: str = ""


def citations(text: str) -> tuple[Citation, ...]:
    """Return all citations of an answer, in text order."""
    report = MarkdownStructure(text)
    found = _Finder(report).run()
    targets: dict[str, str] = {}
    for each in found:
        if each.kind is CitationKind.DEFINITION:
            targets.setdefault(reference_key(each.label), each.url)
    if targets:
        found += _references(report, targets)
        found.sort(key=lambda each: each.start)
    return tuple(found)


def unique_urls(text: str) -> tuple[str, ...]:
    """Return the distinct URLs of an answer as it writes them, in the order of their first citation."""
    return tuple(dict.fromkeys(each.url for each in citations(text)))


def _references(report: MarkdownStructure, targets: dict[str, str]) -> Iterator[Citation]:
    for span, key in report.references():
        if key in targets:
            kind = CitationKind.REFERENCE
            yield Citation(url=targets[key], start=span.start, end=span.end, kind=kind, label=span.label)


_LINK_BEFORE = re.compile(r"\]\(\s{0,4}<?\Z")
_ATTRIBUTE_BEFORE = re.compile(r"[\w-]=[\"']\Z")
_LOOK_BACK = 8


class _Finder:
    """Scanner that finds the URLs of a text in one pass."""

    def __init__(self, report: MarkdownStructure) -> None:
        self._text = report.text
        self._labels = report.link_labels()
        self._definitions = report.definitions()
        self._footnotes = iter(report.footnotes())
        self._footnote: Span | None = next(self._footnotes, None)
        self._found: list[Citation] = []

    def run(self) -> list[Citation]:
        """Return the citations that contain a URL (all kinds except references), in text order."""
        at = 0
        while (begin := URL_START.search(self._text, at)) is not None:
            at = max(self._take(begin.start()), begin.end())
        return self._found

    def _take(self, start: int) -> int:
        """Record the URL that starts at ``start``. Return the position at which to continue."""
        before = self._text[max(0, start - _LOOK_BACK) : start]
        in_angles = enclosed_end(self._text, start, ">") if before.endswith("<") else None
        link = _LINK_BEFORE.search(before)
        if link is not None:
            end = in_angles or link_end(self._text, start)
            if end is not None:
                self._note_link(start, end, close=start - len(link[0]))
                return end
        if in_angles is not None:
            self._note(start, in_angles, *self._context(start, CitationKind.AUTOLINK))
            return in_angles
        if _ATTRIBUTE_BEFORE.search(before):
            end = enclosed_end(self._text, start, before[-1])
            if end is not None:
                self._note(start, end, CitationKind.HTML)
                return end
        end, resume = bare_end(self._text, start)
        self._note(start, end, *self._context(start, CitationKind.BARE))
        return resume

    def _context(self, start: int, kind: CitationKind) -> tuple[CitationKind, str]:
        """Return kind and label of a URL outside links: those of the surrounding definition or footnote, if any."""
        if start in self._definitions:
            return CitationKind.DEFINITION, self._definitions[start]
        while self._footnote is not None and self._footnote.end <= start:
            self._footnote = next(self._footnotes, None)
        if self._footnote is not None and self._footnote.start <= start:
            return CitationKind.FOOTNOTE, self._footnote.label
        return kind, ""

    def _note_link(self, start: int, end: int, *, close: int) -> None:
        opened = self._labels.get(close)
        if opened is None:
            self._note(start, end, CitationKind.LINK)
            return
        # A URL in the text of a link is not a citation. It is often shortened for display.
        while self._found and self._found[-1].start > opened and self._found[-1].kind is CitationKind.BARE:
            self._found.pop()
        kind = CitationKind.IMAGE if self._text[opened - 1 : opened] == "!" else CitationKind.LINK
        self._note(start, end, kind, self._text[opened + 1 : min(close, opened + 1 + MAX_LABEL_CHARS)])

    def _note(self, start: int, end: int, kind: CitationKind, label: str = "") -> None:
        url = clean(self._text[start:end])
        if url is not None:
            self._found.append(Citation(url=url, start=start, end=end, kind=kind, label=label))
