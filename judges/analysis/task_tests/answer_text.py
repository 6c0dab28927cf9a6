"""Parts of an answer's text: its sections, and its values and citations, which edits replace or remove. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from answers.citations import Citation, CitationKind, citations
from cache.urls import canonical_key

_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_TITLE_CHARS = 60
_CACHED_TEXTS = 64
"""Cache size: all leaves use the same few texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Text between a heading and the next heading of any level: ``text[start:end]``, without the heading.

    In an answer without headings, a section is a paragraph.
    """

    title: str
    start: int
    end: int


def sections(text: str) -> tuple[Section, ...]:
    """Return the nonempty sections of an answer, in order."""
    headings = list(_HEADING.finditer(text))
    if headings:
        ends = [*(heading.start() for heading in headings[1:]), len(text)]
        parts = [
            Section(title=each["title"].strip(), start=each.end(), end=end)
            for each, end in zip(headings, ends, strict=True)
        ]
    else:
        parts = list(_paragraphs(text))
    return tuple(each for each in parts if text[each.start : each.end].strip())


def count_value(value: str, text: str) -> int:
    """Return how often a value occurs in a text as a whole word or number."""
    return len(_whole(value).findall(text))


def replace_value(text: str, value: str, by: str) -> str:
    """Return the text with every occurrence of a value replaced, except in URLs."""
    spans = [(each.start, each.end) for each in citations(text) if each.kind is not CitationKind.REFERENCE]
    whole, out, at = _whole(value), [], 0
    for start, end in sorted(spans):
        out += [whole.sub(lambda _: by, text[at:start]), text[start:end]]
        at = end
    return "".join([*out, whole.sub(lambda _: by, text[at:])])


def without_citation(text: str, url: str) -> str | None:
    """Return the text without citations of a page, but with the link texts; None if a citation remains."""
    key = canonical_key(url)
    matching = [each for each in citations(text) if canonical_key(each.url) == key]
    after: list[str] = []  # from the end; joined at the end, because copying the text each time takes quadratic time
    last = len(text)
    for each in sorted(matching, key=lambda each: -each.start):
        start, end, words = _markup(text, each)
        if end > last:  # the markup of the previous one encloses it
            text, after = text[:last] + "".join(reversed(after)), []
            last = len(text)
            start, end, words = _markup(text, each)
        after += [text[end:last], words]
        last = start
    text = text[:last] + "".join(reversed(after))
    return text if key not in cited_keys(text) else None


@lru_cache(maxsize=_CACHED_TEXTS)
def cited_keys(text: str) -> frozenset[str]:
    """Return the keys of the pages that a text cites."""
    return frozenset(canonical_key(each.url) for each in citations(text))


def _markup(text: str, cited: Citation) -> tuple[int, int, str]:
    """Return start and end of a citation with its markup, and the text that replaces it."""
    start, end = cited.start, cited.end
    if cited.kind is CitationKind.REFERENCE:
        return start, end, cited.label
    if cited.kind in (CitationKind.LINK, CitationKind.IMAGE):
        close, opening = text.find(")", end), text.rfind("](", 0, start)
        opened = opening - len(cited.label) - 1
        if close >= 0 and opening >= 0 and text[opened : opened + 1] == "[":
            image = cited.kind is CitationKind.IMAGE
            return opened - image, close + 1, "" if image else cited.label
    if cited.kind is CitationKind.DEFINITION:
        line = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        return line, len(text) if after < 0 else after + 1, ""
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return start - 1, end + 1, ""
    return start, end, ""


def _whole(value: str) -> re.Pattern[str]:
    edge = r"(?<![\w.,:]){}(?![\w]|[.,:]\d)" if value[:1].isdigit() else r"(?<!\w){}(?!\w)"
    return re.compile(edge.format(re.escape(value)))


def _paragraphs(text: str) -> Iterator[Section]:
    at = 0
    for blank in [*_BLANK_LINES.finditer(text), None]:
        end = len(text) if blank is None else blank.start()
        title = " ".join(text[at:end].split())
        yield Section(title=title[:_TITLE_CHARS], start=at, end=end)
        at = end if blank is None else blank.end()
