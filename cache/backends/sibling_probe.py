"""What a site shows for an address that nobody can have made, beside one whose page may stand for a missing one.

One request for each such page, small and short, through the guard like every other. A site that shows the same for
both has not got the page; one that says of the made-up address that there is nothing means what it shows for the
other. Whatever else comes of it changes nothing.
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
"""What a capturer given to a probe may take for its answer."""
PROBE_BYTES = 1024 * 1024
_WITH_WAITING_S = 10.0
_READABLE = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL, CaptureOutcome.SOFT_404, CaptureOutcome.EMPTY})
_MAX_HTML_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a site says of the made-up address: ``same`` None where that says nothing, ``missing`` honestly."""

    said: str
    same: bool | None = None
    missing: bool = False


class SiblingProbe:
    """Settles what stands for a missing page by asking for one beside it. ``fetch`` is closed by whoever made it."""

    def __init__(
        self, fetch: Capturer, *, new_segment: Callable[[], str] = random_segment, within_s: float = _WITH_WAITING_S
    ) -> None:
        """``fetch`` has deadlines and limits of its own; ``within_s`` is also for its waiting to be let in."""
        self._fetch = fetch
        self._new_segment = new_segment
        self._within_s = within_s

    async def settled(self, seen: Observation) -> Observation:
        """``seen``, its outcome changed where the answer for an address beside it leaves no doubt."""
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
    # Where a query names the page, that there is no such path says nothing of it.
    return CaptureOutcome.OK if honest and seen.suspicion is Suspicion.LIKELY else seen.outcome


def _answer(seen: Observation, beside: Observation) -> _Answer:
    """What the answer for the made-up address says of the one that was asked for. Takes time."""
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
    """What a browser showed, read as if there had been none: the two are not worded alike."""
    if seen.html is None or len(seen.html) > _MAX_HTML_BYTES:
        return seen.text
    return read_html(seen.html.decode("utf-8", errors="replace"), seen.final_url or seen.url).text
