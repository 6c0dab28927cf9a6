"""Markdown of an answer in which links to the sources are inserted behind the cited text, or replace its marks."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote

from answers.citations import MAX_LABEL_CHARS, citations, clean, link_labels
from answers.errors import ProblemCode, invalid

MAX_CITATIONS = 30_000
"""Maximum number of citations, and of links in the text. ``answers.binding`` has the same limits."""
MAX_MARKDOWN_CHARS = 4 * 1024 * 1024
"""Maximum length of the Markdown. Links can make it much longer than the reply, because a reply has each URL once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCitation:
    """Citation of a reply. ``text[start:end]`` (in characters of the Markdown) is the cited text
    without trailing punctuation, white space and table borders.

    If the provider only gives a mark, it is the link in its place. ``url`` is None for sources that are not web pages,
    such as uploaded files. ``quote`` is the text of the source, if the provider returns it.
    """

    start: int
    end: int
    url: str | None
    title: str = ""
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyAnswer:
    """Markdown of a reply, and its citations in the order of the reply."""

    text: str
    citations: tuple[ReplyCitation, ...]


class Source(NamedTuple):
    """Source of a citation, with the fields of ``ReplyCitation``."""

    url: str | None
    title: str
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """Citation with its span, in characters of the text before links are inserted.

    ``is_mark``: the span is a mark of a product, which the link replaces. ``label`` is the text of the link then, if it
    is not the title of the source.
    """

    start: int
    end: int
    source: Source
    is_mark: bool = False
    label: str = ""

    def moved(self, by: int) -> Cited:
        return replace(self, start=self.start + by, end=self.end + by)


_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f<>\"`\\|]+")
_ENTITY = re.compile(r"&(?=#?\w{1,31};)")
_PARENTHESES = re.compile(r"[()]")


def web_url(written: str) -> str | None:
    """Return a URL without characters that end a Markdown link; None if it is not one of a web page."""
    encoded = _UNSAFE.sub(lambda match: quote(match[0], errors="replace"), written.strip())
    depth = 0
    for parenthesis in _PARENTHESES.findall(encoded):
        depth += 1 if parenthesis == "(" else -1
        if depth < 0:
            break
    if depth:
        encoded = encoded.replace("(", "%28").replace(")", "%29")
    return clean(encoded.replace("](", "%5D("))


def _destination(url: str) -> str:
    return _ENTITY.sub("&amp;", url)


_MARKUP = re.compile(r"([\\`*_\[\]<>|&~])")


def _link(url: str, title: str) -> str:
    label = " ".join(title.split())[:MAX_LABEL_CHARS] or url.partition("://")[2].partition("/")[0]
    escaped = _MARKUP.sub(r"\\\1", label)
    return f"[{escaped}]({_destination(url)})"


def with_links(text: str, cited: Sequence[Cited], path: str) -> ReplyAnswer:
    """Insert a link behind each citation whose URL is not in its span, or in the place of its mark, and move the spans
    accordingly."""
    _check_count(len(cited), path)
    places = _Places(text, path)
    links: dict[int, dict[str, str]] = defaultdict(dict)
    marks: dict[int, Cited] = {}
    ends: list[int] = []
    size = len(text)
    for one in cited:
        url, title, _ = one.source
        at, end = (one.end, one.end) if one.is_mark else places.after(one.end)
        if one.is_mark:
            marks[at] = one
        elif url is not None and places.contain(url, one.start, one.end):
            ends.append(one.end)
            continue
        ends.append(max(one.start, end))
        key = url or one.label
        if key and key not in links[at]:
            label = f"[{one.label}]({_destination(url)})" if url and one.label else one.label
            links[at][key] = label or _link(key, title)
            size += len(links[at][key]) + len(" ()")
        _check_size(size, path)
    pieces: list[str] = []
    read = 0
    positions = sorted(links)
    lengths = [0]
    for at in positions:
        mark = marks.get(at)
        kept = at if mark is None else max(read, mark.start)
        inserted = ", ".join(links[at].values())
        if mark is None or not mark.label:
            inserted = places.insertion(at, inserted)
            kept -= mark is not None and kept > read and text[kept - 1] == " "
        pieces += (text[read:kept], inserted)
        lengths.append(lengths[-1] + len(inserted) - (at - kept))
        read = at
    pieces.append(text[read:])
    moved = (
        (
            one.start + lengths[bisect_right(positions, one.start)],
            # The link in the place of a mark is a part of the citation, the one behind a cited text is not.
            end
            + lengths[
                max((bisect_right if one.is_mark else bisect_left)(positions, end), bisect_right(positions, one.start))
            ],
        )
        for one, end in zip(cited, ends, strict=True)
    )
    return ReplyAnswer(
        text="".join(pieces),
        citations=tuple(
            ReplyCitation(
                start=min(start, end), end=end, url=one.source.url, title=one.source.title, quote=one.source.quote
            )
            for one, (start, end) in zip(cited, moved, strict=True)
        ),
    )


def _check_size(chars: int, path: str) -> None:
    if chars > MAX_MARKDOWN_CHARS:
        message = f"has more than {MAX_MARKDOWN_CHARS} characters with its citations as links"
        raise invalid(path, message, ProblemCode.TOO_LARGE)


def _check_count(links: int, path: str) -> None:
    if links > MAX_CITATIONS:
        message = f"has more than {MAX_CITATIONS} links or citations; divide the answer"
        raise invalid(path, message, ProblemCode.TOO_LARGE)


class Intervals:
    """Union of intervals, for lookups in logarithmic time."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(intervals):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def end_of(self, position: int) -> int | None:
        """Return the end of the interval that contains the position between its two ends; None if there is none."""
        place = bisect_left(self._starts, position) - 1
        return self._ends[place] if place >= 0 and position < self._ends[place] else None


class _Places:
    """Places of a Markdown text at which a link can be inserted without damage."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        found = citations(text)
        _check_count(len(found), path)
        self._urls: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in found:
            self._urls[each.url].append((each.start, each.end))
        self._runs = [run.span() for run in _TRAILING.finditer(text)]
        self._fences = Intervals((start, end + 1) for start, end in _fences(text))
        self._unbroken = Intervals([*_inline_code(text), *self._links()])

    def _links(self) -> Iterator[tuple[int, int]]:
        for close, opened in link_labels(self._text).items():
            yield opened, close + 2
        for start, end in (span for spans in self._urls.values() for span in spans):
            before = _BEFORE_URL.search(self._text, max(0, start - 3), start)
            after = _AFTER_URL.match(self._text, end) if before else None
            yield before.start() if before else start, after.end() if after else end

    def contain(self, url: str, start: int, end: int) -> bool:
        """Return whether the text has the URL within the span, at least in part."""
        spans = self._urls.get(url, [])
        place = bisect_left(spans, (end,)) - 1
        return place >= 0 and spans[place][1] > start

    def after(self, end: int) -> tuple[int, int]:
        """Return the position for a link behind a span that ends at ``end``, and the end of its visible text.

        The position is before trailing punctuation, white space and table borders, so that the link belongs to this
        sentence and not to the next one, and behind links and code that it would split.
        """
        place = bisect_left(self._runs, (end,)) - 1
        visible = end
        if place >= 0 and self._runs[place][0] > 0 and end <= self._runs[place][1]:
            visible = self._runs[place][0]
        at = self._unbroken.end_of(visible) or visible
        fence = self._fences.end_of(at)
        return (at if fence is None else fence - 1), visible

    def insertion(self, at: int, links: str) -> str:
        return f"\n\n({links})\n" if self._fences.end_of(at) else f" ({links})"


_TRAILING = re.compile(r"[\s|:.!?\u3002\uff01\uff0e\uff1f-]+")
_BEFORE_URL = re.compile(r"(?:\]\(<?|<)\Z")
_AFTER_URL = re.compile(r"[^)\n]{0,300}\)|>")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


def _inline_code(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _INLINE_CODE.finditer(text))


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each code span and fenced code block."""
    yield from _inline_code(text)
    yield from _fences(text)


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each fenced code block. A block that is not closed ends with the text."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match if match[1][0] == "~" or "`" not in match[2] else None
        elif match[1].startswith(opened[1]) and not match[2].strip():
            yield opened.start(), match.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)
