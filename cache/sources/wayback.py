"""Web archive: copies of pages that their own servers no longer deliver.

Queries the archive's availability API first and then its index (CDX), at most one request per second, through the
egress proxy. The copy is fetched raw (``id_``), without the archive's additions. "Never seen" is reported only if the
index answered and has no usable copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import structlog

from cache.backends.http import HttpCapturer
from cache.backends.inflating import MAX_API_BYTES
from cache.capture import CaptureOutcome, CaptureSource, Observation, PageKind
from cache.pacing import HostPacing
from cache.urls import MAX_URL_CHARS, host_and_port, normal_path, same_page

PUBLIC_AVAILABILITY = "https://archive.org"
PUBLIC_ARCHIVE = "https://web.archive.org"
REQUEST_INTERVAL_S = 1.0
BACKEND = "wayback"
_STAMP = "%Y%m%d%H%M%S"
_NOT_ARCHIVABLE = frozenset({CaptureOutcome.UNSUPPORTED, CaptureOutcome.EGRESS_DENIED})
"""Outcomes for which the archive is not queried: unsupported URLs and denied addresses."""
_log = structlog.get_logger(__name__)


class ArchiveUnavailable(Exception):
    """The archive did not answer, or sent an unexpected response. Never raised outside this module."""


class Wayback:
    """Implements ``cache.pages.Archive``. ``capturer`` is closed by its owner."""

    def __init__(
        self,
        capturer: HttpCapturer,
        pacing: HostPacing,
        *,
        now: Callable[[], datetime],
        availability: str = PUBLIC_AVAILABILITY,
        archive: str = PUBLIC_ARCHIVE,
        interval_s: float = REQUEST_INTERVAL_S,
    ) -> None:
        """``availability`` and ``archive`` are the base URLs of the two services, without a trailing slash."""
        self._capturer = capturer
        self._pacing = pacing
        self._now = now
        self._availability = availability
        self._archive = archive
        self._interval_s = interval_s

    async def find_copy(self, url: str, live: Observation, near: datetime | None) -> Observation:
        """Return the copy closest to ``near`` (default: now). If there is none, return ``live`` with a note."""
        if live.is_evidence or live.outcome in _NOT_ARCHIVABLE:
            return live
        archived_url = _archivable_url(url)
        if archived_url is None:
            return _add_note(live, "its URL cannot be requested from the web archive", {"wayback": "not requested"})
        time = (near or self._now()).astimezone(UTC)
        try:
            stamp = await self._query_availability(archived_url, time) or await self._query_index(archived_url, time)
            if stamp is None:
                return _add_note(live, "never seen by the web archive either", {"wayback": "never seen"})
            return await self._fetch_copy(archived_url, stamp, live)
        except ArchiveUnavailable as failed:
            _log.warning("web archive unavailable", url=url, detail=str(failed))
            return _add_note(live, f"the web archive did not answer: {failed}", {"wayback": "no answer"})

    async def _query_availability(self, url: str, time: datetime) -> str | None:
        """Return the time stamp of the closest usable copy from the availability API. None proves nothing."""
        query = urlencode({"url": url, "timestamp": time.strftime(_STAMP)})
        response = await self._json(f"{self._availability}/wayback/available?{query}")
        closest = response.get("archived_snapshots", {}) if isinstance(response, dict) else {}
        closest = closest.get("closest", {}) if isinstance(closest, dict) else {}
        if not isinstance(closest, dict) or not closest.get("available") or str(closest.get("status")) != "200":
            return None
        return _valid_stamp(closest.get("timestamp"))

    async def _query_index(self, url: str, time: datetime) -> str | None:
        """Return the time stamp of the closest usable copy from the index, or None if there never was one."""
        query = urlencode(
            {
                "url": url,
                "output": "json",
                "fl": "timestamp,statuscode",
                "filter": "statuscode:200",
                "closest": time.strftime(_STAMP),
                "sort": "closest",
                "limit": "10",
            }
        )
        rows = await self._json(f"{self._archive}/cdx/search/cdx?{query}")
        if not isinstance(rows, list):
            raise ArchiveUnavailable("its index response is not a list")
        stamps = [valid for row in rows[1:] if isinstance(row, list) and row and (valid := _valid_stamp(row[0]))]
        return min(stamps, key=lambda stamp: abs(_time(stamp) - time), default=None)

    async def _fetch_copy(self, archived_url: str, stamp: str, live: Observation) -> Observation:
        copy_url = f"{self._archive}/web/{stamp}id_/{quote(archived_url, safe=_URL_CHARS)}"
        seen = await self._get(copy_url)
        final = seen.final_url or copy_url
        if len(seen.chain) <= 1 and final != copy_url:
            raise ArchiveUnavailable(f"{final} was requested instead of {copy_url}")
        if not final.startswith(f"{self._archive}/web/"):
            raise ArchiveUnavailable("the copy redirects out of the archive")
        if not seen.is_evidence:
            raise ArchiveUnavailable(f"the copy of {stamp} ended with {seen.outcome.value}")
        # A redirect in the archive leads to another copy, which has its own time and may be a copy of another page.
        copy = _COPY.match(final.removeprefix(f"{self._archive}/web/"))
        if copy is None:
            raise ArchiveUnavailable("the copy redirects to an archive page without a date")
        at = _time(_valid_stamp(copy[1]) or stamp)
        details = {
            "archived_at": at.isoformat(),
            "archive_url": final,
            "live_outcome": live.outcome.value,
            "live_status": str(live.http_status or ""),
        }
        return replace(
            seen,
            url=live.url,
            final_url=None if same_page(copy[2], archived_url) else copy[2],
            chain=(),
            backend=BACKEND,
            source=CaptureSource.WAYBACK,
            detail=f"as archived on {at:%Y-%m-%d}; the page itself: {live.outcome.value}",
            provenance={name: value for name, value in details.items() if value},
        )

    async def _json(self, address: str) -> Any:
        seen = await self._get(address, max_bytes=MAX_API_BYTES)
        if seen.http_status != 200 or seen.kind is not PageKind.TEXT:
            raise ArchiveUnavailable(f"{seen.outcome.value} {seen.http_status or ''} {seen.detail}".strip())
        if not seen.text.strip():
            return []  # the index sends an empty response if it has no copies
        try:
            return json.loads(seen.text)
        except ValueError as broken:
            raise ArchiveUnavailable(f"invalid JSON: {broken}") from broken

    async def _get(self, address: str, *, max_bytes: int | None = None) -> Observation:
        await self._pacing.wait(host_and_port(address)[0], self._interval_s)
        return await self._capturer.capture(address, max_bytes=max_bytes)


_COPY = re.compile(r"(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_URL_CHARS = "%/:?&=+,;@!$'()*~[]"
_MAX_DECODINGS = 5


def _archivable_url(url: str) -> str | None:
    """Return a URL without dot segments and fragment, as part of a path of the archive.

    Dot segments would climb out of the cited URL: ``https://a.example/../../20200101000000id_/https://b.example/``
    would request another page. None if a segment becomes a dot segment when it is decoded several times.

    >>> _archivable_url("https://a.example/b/%2e%2E/c?d=/../e#f")
    'https://a.example/c?d=/../e'
    >>> _archivable_url("https://a.example/b/%252e%252e/c") is _archivable_url("https://a.example/..%2F..%5cc") is None
    True
    """
    if len(url) > MAX_URL_CHARS:
        return None
    parts = urlsplit(url)
    path = normal_path(parts.path)
    decoded = path
    for _ in range(_MAX_DECODINGS):
        decoded = unquote(decoded)
    if ".." in re.split(r"[/\\]", decoded):
        return None
    return parts._replace(path=path, fragment="").geturl()


def _add_note(live: Observation, detail: str, details: dict[str, str]) -> Observation:
    return replace(
        live, detail=f"{live.detail}; {detail}".removeprefix("; "), provenance={**live.provenance, **details}
    )


def _valid_stamp(value: object) -> str | None:
    """Return a time stamp of the archive if it is valid, else None."""
    text = str(value)
    return text if text.isdigit() and len(text) == 14 and _is_time(text) else None


def _is_time(stamp: str) -> bool:
    try:
        _time(stamp)
    except ValueError:
        return False
    return True


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
