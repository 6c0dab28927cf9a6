"""Soft 404 probe: requests a random sibling URL of a page that may be a soft 404.

It sends one small request through the egress proxy. If the site shows the same content for both URLs, the page is a
soft 404. If the site returns 404 or 410 for the random URL, the page may be real. Other results change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import structlog

from cache.backends.plain_html import read_html
from cache.capture import CaptureOutcome, Capturer, Observation, PageKind, Suspicion
from cache.classify.quality import GONE_STATUSES
from cache.classify.similarity import SAME, likeness, random_segment, sibling_of
from cache.urls import canonical_key

_log = structlog.get_logger(__name__)

PROBE_S = 4.0
"""Time limit for the capturer of the probe."""
PROBE_BYTES = 1024 * 1024
_WITH_WAITING_S = 10.0
_READABLE = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL, CaptureOutcome.SOFT_404, CaptureOutcome.EMPTY})
_MAX_HTML_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Result of the probe. ``same``: whether the content is the same, None if unknown. ``missing``: 404 or 410."""

    said: str
    same: bool | None = None
    missing: bool = False


class SiblingProbe:
    """Decides suspected soft 404s with a request to a sibling URL. ``fetch`` is closed by its owner."""

    def __init__(
        self, fetch: Capturer, *, new_segment: Callable[[], str] = random_segment, within_s: float = _WITH_WAITING_S
    ) -> None:
        """``fetch`` has its own limits. ``within_s`` also includes its waiting time."""
        self._fetch = fetch
        self._new_segment = new_segment
        self._within_s = within_s

    async def settled(self, seen: Observation) -> Observation:
        """Return ``seen``, with another outcome if the response of the sibling URL is conclusive."""
        if seen.suspicion is None or not (seen.outcome is CaptureOutcome.SOFT_404 or seen.is_evidence):
            return seen
        sibling = sibling_of(seen.url, self._new_segment())
        try:
            async with asyncio.timeout(self._within_s):
                beside = await self._fetch.capture(sibling)
                answer = await asyncio.to_thread(_answer, seen, beside)
        except TimeoutError:
            answer = _Answer(said="could not be asked in time")
        outcome = _weighed(seen, answer)
        _log.info("page_sibling_asked", url=seen.url, sibling=sibling, said=answer.said, outcome=outcome.value)
        detail = f"{seen.detail}; " * bool(seen.detail) + f"a made-up address beside it {answer.said}"
        return replace(seen, outcome=outcome, detail=detail)


def _weighed(seen: Observation, answer: _Answer) -> CaptureOutcome:
    if answer.same:
        return CaptureOutcome.SOFT_404
    honest = answer.missing and (seen.http_status or 200) < 300 and not urlsplit(canonical_key(seen.url)).query
    # If the query identifies the page, a 404 for another path proves nothing.
    return CaptureOutcome.OK if honest and seen.suspicion is Suspicion.LIKELY else seen.outcome


def _answer(seen: Observation, beside: Observation) -> _Answer:
    """Compare the page with the response of the sibling URL. CPU-bound."""
    if beside.http_status in GONE_STATUSES:
        return _Answer(said=f"answers {beside.http_status}", missing=True)
    if beside.outcome not in _READABLE or beside.kind is not PageKind.WEB:
        return _Answer(said=f"ended in {beside.outcome.value}")
    at, ended = seen.final_url or seen.url, beside.final_url or beside.url
    if _moved(seen) and _moved(beside) and canonical_key(at) == canonical_key(ended):
        return _Answer(said="is sent to the same place", same=True)
    text = seen.text if seen.backend == beside.backend else _without_browser(seen)
    alike = likeness(text, seen.url, beside.text, beside.url)
    if alike >= SAME:
        return _Answer(said=f"shows the same ({alike:.2f})", same=True)
    return _Answer(said=f"shows something else ({alike:.2f})", same=False)


def _moved(seen: Observation) -> bool:
    return canonical_key(seen.final_url or seen.url) != canonical_key(seen.url)


def _without_browser(seen: Observation) -> str:
    """Return the text of the page extracted without a browser, because the two extractions differ."""
    if seen.html is None or len(seen.html) > _MAX_HTML_BYTES:
        return seen.text
    return read_html(seen.html.decode("utf-8", errors="replace"), seen.final_url or seen.url).text
