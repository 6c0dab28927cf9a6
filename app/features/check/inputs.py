"""Reports to check, read from files, from replies of model providers and from published pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from app.engine.runtime import Runtime
from app.features.check.errors import ReportRejected
from app.features.check.pipeline import ReportInput
from cache.errors import BrowserUnavailable, CacheError
from cache.urls import canonical_key

_MIN_LINE_WORDS: Final = 6
"""Lines with fewer words, such as menus, contain no citations of the same site."""


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
