"""Capture without a browser: one GET request through the egress proxy.

PDFs, images and plain text are captured as well as with a browser. HTML is converted to text as received: content that
scripts would add is missing, and there is no screenshot.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from urllib.parse import urljoin

import httpx

from cache.backends.content import read_content
from cache.backends.documents import SNIFFED_BYTES, byte_limit
from cache.backends.failures import (
    KEPT_HEADERS,
    MAX_REDIRECTS,
    REDIRECTS,
    CaptureFailure,
    failure_from_refusal,
    of_target,
)
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy, Lane
from cache.errors import DocumentRejected
from cache.pages import utc_now
from cache.urls import unfetchable_reason

DEADLINE_S = 60.0
_LOCATION = "location"
USER_AGENT = "Mozilla/5.0 (compatible; assay; checks cited pages)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    url: str
    status: int
    headers: dict[str, str]
    chain: tuple[str, ...]
    content: bytes
    location: str = ""
    whole: bool = True


class _FetchFailed(Exception):
    """The fetch failed without a response. Never raised outside this module."""

    def __init__(self, ending: CaptureFailure, *, url: str, chain: tuple[str, ...]) -> None:
        super().__init__(ending.detail)
        self.ending = ending
        self.url = url
        self.chain = chain


class HttpCapturer:
    """Capturer that uses plain HTTP. ``semaphore`` limits concurrent captures."""

    def __init__(
        self,
        guard: EgressProxy,
        *,
        semaphore: asyncio.Semaphore,
        deadline_s: float = DEADLINE_S,
        max_bytes: int | None = None,
        contact: str = "",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Create a capturer.

        Args:
            guard: Egress proxy.
            semaphore: Acquired for each capture.
            deadline_s: Time limit of a capture.
            max_bytes: Maximum size of a response, compressed and decompressed (default: depends on the content type).
            contact: Added to the user agent.
            clock: Returns the current time.
        """
        self._guard = guard
        self._max_bytes = max_bytes
        self._semaphore = semaphore
        self._deadline_s = deadline_s
        self._user_agent = f"{USER_AGENT} (+{contact})" if contact else USER_AGENT
        self._clock = clock
        self._tls: ssl.SSLContext | None = None

    async def capture(self, url: str) -> Observation:
        async with self._semaphore:
            began = time.monotonic()
            blank = Observation(
                url=url,
                outcome=CaptureOutcome.TIMEOUT,
                captured_at=self._clock(),
                duration_s=0.0,
                backend="http",
                detail=f"no response within {self._deadline_s:g} s",
                versions={"httpx": version("httpx")},
            )
            refusal = unfetchable_reason(url)
            if refusal is not None:
                return replace(blank, outcome=CaptureOutcome.UNSUPPORTED, detail=refusal)
            try:
                async with asyncio.timeout(self._deadline_s), self._guard.lane(max_bytes=self._max_bytes) as lane:
                    seen = await self._fetch(blank, url, lane, began)
            except TimeoutError:
                seen = blank
            return replace(seen, duration_s=time.monotonic() - began)

    async def aclose(self) -> None:
        """Do nothing; no resources outlive a capture."""

    async def _fetch(self, blank: Observation, url: str, lane: Lane, began: float) -> Observation:
        try:
            response = await self._get(url, lane)
        except _FetchFailed as ended:
            return replace(
                blank,
                outcome=ended.ending.outcome,
                detail=ended.ending.detail,
                gone=ended.ending.gone,
                final_url=ended.url,
                chain=ended.chain,
            )
        left_s = max(1.0, self._deadline_s - (time.monotonic() - began) - 1.0)
        arrived = replace(
            blank,
            detail="",
            final_url=response.url,
            http_status=response.status,
            chain=response.chain,
            headers={name: value for name, value in response.headers.items() if name in KEPT_HEADERS},
        )
        content_type = response.headers.get("content-type", "")
        seen = await read_content(arrived, response.content, content_type, deadline_s=left_s)
        if seen.outcome is CaptureOutcome.OK and not response.whole:
            return replace(seen, outcome=CaptureOutcome.PARTIAL, detail="what the server sent breaks off")
        return seen

    async def _get(self, url: str, lane: Lane) -> _Response:
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        headers = {"User-Agent": self._user_agent, "Accept-Encoding": ACCEPT_ENCODING, "Accept": "*/*"}
        timeout = httpx.Timeout(self._deadline_s)
        chain: list[str] = []
        async with httpx.AsyncClient(
            proxy=lane.url,
            trust_env=False,
            verify=self._tls,
            headers=headers,
            timeout=timeout,
            event_hooks={"response": [_hide_location]},
        ) as client:
            while True:
                chain.append(url)
                try:
                    response = await _get_once(client, url, tuple(chain), self._max_bytes)
                except (httpx.HTTPError, httpx.InvalidURL) as failed:
                    ending = _http_failure(failed, lane, url)
                    raise _FetchFailed(ending, url=url, chain=tuple(chain)) from failed
                refusal = lane.refusal_of(url) if response.status in (403, 502) else None
                if refusal is not None:
                    raise _FetchFailed(failure_from_refusal(refusal), url=url, chain=tuple(chain))
                target = _redirect_target(response)
                if target is None:
                    return response
                url = _check_redirect(target, chain)


async def _get_once(client: httpx.AsyncClient, url: str, chain: tuple[str, ...], max_bytes: int | None) -> _Response:
    async with client.stream("GET", url) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        location = str(response.extensions.get(_LOCATION, "")).strip()
        content, whole = b"", True
        is_redirect = status in REDIRECTS and location
        if not is_redirect:
            try:
                content, whole = await _read_body(response, headers, max_bytes)
            except DocumentRejected as rejected:
                ending = CaptureFailure(outcome=rejected.outcome, detail=rejected.detail)
                raise _FetchFailed(ending, url=url, chain=chain) from rejected
        return _Response(
            url=url,
            status=status,
            headers=headers,
            chain=chain,
            content=content,
            location=location if is_redirect else "",
            whole=whole,
        )


async def _hide_location(response: httpx.Response) -> None:
    """Move the ``Location`` header out of the response, because httpx parses it and raises if it is invalid."""
    if "location" in response.headers:
        response.extensions[_LOCATION] = response.headers.pop("location")


async def _read_body(response: httpx.Response, headers: dict[str, str], max_bytes: int | None) -> tuple[bytes, bool]:
    """Return the body, and whether it is complete."""
    content_type = headers.get("content-type", "")

    def limit(head: bytes) -> int:
        return byte_limit(head, content_type) if max_bytes is None else min(max_bytes, byte_limit(head, content_type))

    inflater = BoundedInflater(headers.get("content-encoding", ""), limit)
    async for wire in response.aiter_raw():
        inflater.feed(wire)
    return inflater.content, inflater.is_whole


def _redirect_target(response: _Response) -> str | None:
    """Return the URL that a response redirects to. Spaces are escaped, as in browsers."""
    if not response.location:
        return None
    try:
        return urljoin(response.url, response.location.replace(" ", "%20"))
    except ValueError:
        return response.location


def _check_redirect(target: str, chain: list[str]) -> str:
    ending = of_target(target)
    if ending is not None:
        raise _FetchFailed(ending, url=chain[-1], chain=tuple(chain))
    if len(chain) > MAX_REDIRECTS:
        ending = CaptureFailure(outcome=CaptureOutcome.REDIRECT_LOOP, detail=f"more than {MAX_REDIRECTS} redirects")
        raise _FetchFailed(ending, url=target, chain=tuple(chain))
    return target


def _http_failure(failed: httpx.HTTPError | httpx.InvalidURL, lane: Lane, url: str) -> CaptureFailure:
    refusal = lane.refusal_of(url)
    if refusal is not None:
        return failure_from_refusal(refusal)
    if isinstance(failed, httpx.TimeoutException):
        return CaptureFailure(outcome=CaptureOutcome.TIMEOUT, detail="the server stopped responding")
    if _is_tls(failed):
        return CaptureFailure(outcome=CaptureOutcome.TLS_ERROR, detail=str(failed))
    return CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=str(failed) or type(failed).__name__)


def _is_tls(failed: BaseException | None) -> bool:
    while failed is not None:
        if isinstance(failed, ssl.SSLError):
            return True
        failed = failed.__cause__ or failed.__context__
    return False


ACCEPT_ENCODING = "gzip, identity"
_STEP_BYTES = 64 * 1024
_GZIP_START = b"\x1f"  # first byte of a gzip member; a chunk may contain only this byte of it
# zlib's window argument per encoding. The flag 32 detects gzip and zlib headers.
_GZIP = zlib.MAX_WBITS | 16
_WINDOWS = {"identity": None, "gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS | 32}


class BoundedInflater:
    """Decompresses a body chunk by chunk, up to the limit for its content type.

    At most one step (64 KiB) is decompressed beyond the limit.
    """

    def __init__(self, encoding: str, limit_of: Callable[[bytes], int]) -> None:
        """Create an inflater.

        Args:
            encoding: Value of the Content-Encoding header.
            limit_of: Returns the maximum size for content that starts with the given bytes.

        Raises:
            DocumentRejected: the encoding is not identity, gzip or deflate.
        """
        names = [name.strip().lower() for name in encoding.split(",") if name.strip()] or ["identity"]
        if len(names) > 1 or names[0] not in _WINDOWS:
            raise DocumentRejected(CaptureOutcome.UNSUPPORTED, f"unsupported content encoding {encoding}")
        self._window = _WINDOWS[names[0]]
        self._engine = None if self._window is None else zlib.decompressobj(self._window)
        self._limit_of = limit_of
        self._limit: int | None = None
        self._content = bytearray()

    @property
    def is_whole(self) -> bool:
        """Whether the compressed stream is complete."""
        return self._engine is None or self._engine.eof or not self._content

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def feed(self, wire: bytes) -> None:
        """Decompress the next chunk.

        Raises:
            DocumentRejected: the content exceeds its limit or is damaged.
        """
        if self._engine is None or self._window is None:
            self._append(wire)
            return
        while wire:
            if self._engine.eof:
                # A gzip member has ended. Another member counts towards the same limit; anything else is padding.
                if wire[:1] != _GZIP_START:
                    return
                self._engine = zlib.decompressobj(self._window)
            try:
                self._append(self._engine.decompress(wire, _STEP_BYTES))
            except zlib.error as damage:
                raise DocumentRejected(CaptureOutcome.DAMAGED, f"damaged compression: {damage}") from damage
            wire = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    def _append(self, content: bytes) -> None:
        self._content += content
        if self._limit is None and len(self._content) >= SNIFFED_BYTES:
            self._limit = self._limit_of(bytes(self._content[:SNIFFED_BYTES]))
        if self._limit is not None and len(self._content) > self._limit:
            raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {self._limit} bytes of content")
