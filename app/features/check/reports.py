"""Reports to check: read from text or from a published page, with their citations and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from answers.binding import Binding, bind
from answers.errors import TooManyParts
from app.engine.runtime import Runtime
from app.errors import InputRejected
from app.features.check.statements import Section, sections_of
from cache.errors import BrowserUnavailable, CacheError
from cache.urls import canonical_key

MAX_REPORT_CHARS: Final = 4_000_000
MAX_CITATIONS: Final = 10_000
MAX_PAGES: Final = 2_000
TOO_LARGE: Final = (
    "divide the report into several files, or list its citations without judging them (`assay check FILE --bind`)"
)

_MIN_LINE_WORDS: Final = 6
"""Lines with fewer words, such as menus, contain no citations of the same site."""


class ReportRejected(InputRejected):
    """The report cannot be checked: too long, too many citations, or its page cannot be read. The message says why."""

    code = "REPORT_REJECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """Report to check. ``url`` and ``page_id`` are set for a published page."""

    name: str
    text: str
    url: str | None = None
    page_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlan:
    """Citations and statements of a report. ``urls`` are the distinct pages that it names, bound or not, in text order.

    Truncated URLs are not pages.
    """

    report: ReportInput
    binding: Binding
    sections: tuple[Section, ...]
    urls: tuple[str, ...]

    @property
    def sentences(self) -> int:
        return sum(len(section.statements) for section in self.sections)


def plan_check(report: ReportInput) -> CheckPlan:
    """Return the plan of a check. Takes up to a second per MB; run it in a thread.

    Raises:
        ReportRejected: The report is empty, too long, or has too many citations.
    """
    text = report.text
    if not text.strip():
        raise ReportRejected(f"{report.name} is empty")
    if len(text) > MAX_REPORT_CHARS:
        raise ReportRejected(f"{report.name} has {len(text):,} characters (maximum {MAX_REPORT_CHARS:,}): {TOO_LARGE}")
    try:
        binding = bind(text)
    except TooManyParts as error:
        raise ReportRejected(str(error)) from error
    pairs = len({(mark.statement_start, mark.source) for mark in binding.marks})
    if pairs > MAX_CITATIONS:
        raise ReportRejected(f"{report.name} has {pairs:,} citations (maximum {MAX_CITATIONS:,}): {TOO_LARGE}")
    by_key: dict[str, str] = {}
    for source in sorted(binding.sources, key=lambda each: each.start):
        if source.url is not None and not source.truncated:
            by_key.setdefault(canonical_key(source.url), source.url)
    if len(by_key) > MAX_PAGES:
        raise ReportRejected(f"{report.name} names {len(by_key):,} pages (maximum {MAX_PAGES:,}): {TOO_LARGE}")
    return CheckPlan(report=report, binding=binding, sections=tuple(sections_of(binding)), urls=tuple(by_key.values()))


def is_url(source: str) -> bool:
    """Return whether the argument of the command is the address of a page."""
    return re.match(r"https?://\S", source, re.IGNORECASE) is not None


async def published_report(runtime: Runtime, url: str, *, owner: str | None = None) -> ReportInput:
    """Capture a published page and return its text with its links.

    Raises:
        ReportRejected: The page cannot be read.
        BrowserUnavailable: This machine has no usable browser.
    """
    try:
        evidence = await runtime.pages.evidence_for(url, owner=owner)
    except BrowserUnavailable:
        raise
    except CacheError as error:
        raise ReportRejected(f"The report cannot be read: {error}") from error
    capture = evidence.capture
    text = text_with_links(evidence.text, evidence.links, capture.final_url or url)
    return ReportInput(name=capture.title or url, text=text, url=url, page_id=capture.id)


def text_with_links(text: str, links: Sequence[tuple[str, str]], page_url: str) -> str:
    """Return the visible text of a page with its links in Markdown.

    ``links`` are (words, target) in the order of the page. Links to the page itself are left out, and those to other
    pages of its site unless they are within a sentence.
    """
    pieces: list[str] = []
    at = 0
    for start, end, target in _placed(text, links, page_url):
        label = text[start:end]
        destination = target.replace("(", "%28").replace(")", "%29")
        pieces += (text[at:start], f"[{label}]({destination})")
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _placed(text: str, links: Sequence[tuple[str, str]], page_url: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and target of each link that is found in the text, in order and without overlaps."""
    own_key, host = canonical_key(page_url), urlsplit(page_url).hostname
    at = 0
    for words, target in links:
        label = " ".join(words.split())
        if not label or "[" in label.strip("[]") or not is_url(target) or " " in target:
            continue
        start = text.find(label, at)
        if start < 0:
            continue
        end = start + len(label)
        at = end
        if canonical_key(target.partition("#")[0]) == own_key:
            continue
        line = text[text.rfind("\n", 0, start) + 1 : (text.find("\n", end) + 1 or len(text) + 1) - 1]
        if urlsplit(target).hostname == host and len(line.split()) - len(label.split()) < _MIN_LINE_WORDS:
            continue
        yield start, end, target
