"""Capture without a browser: one GET request through the egress proxy.

PDFs, images and plain text are captured as well as with a browser. HTML is converted to text as received: content that
scripts would add is missing, and there is no screenshot.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from importlib.metadata import version
from urllib.parse import urljoin

import httpx

from cache.backends.content import read_content
from cache.backends.documents import byte_limit
from cache.backends.failures import (
    MAX_REDIRECTS,
    REDIRECTS,
    STORED_HEADERS,
    CaptureFailure,
    failure_from_refusal,
    failure_from_target,
)
from cache.backends.inflating import ACCEPT_ENCODING, BoundedInflater
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy
from cache.egress.proxy_port import ProxyPort
from cache.errors import DocumentRejected
from cache.pacing import time_limit
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
    is_complete: bool = True


class _FetchFailed(Exception):
    """The fetch failed without a response. Never raised outside this module."""

    def __init__(self, failure: CaptureFailure, *, url: str, chain: tuple[str, ...]) -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.url = url
        self.chain = chain


class HttpCapturer:
    """Capturer that uses plain HTTP. ``semaphore`` limits concurrent captures."""

    def __init__(
        self,
        proxy: EgressProxy,
        *,
        semaphore: AbstractAsyncContextManager[object],
        deadline_s: float = DEADLINE_S,
        max_bytes: int | None = None,
        contact: str = "",
    ) -> None:
        """Create a capturer.

        Args:
            proxy: Egress proxy.
            semaphore: Acquired for each capture.
            deadline_s: Time limit of a capture.
            max_bytes: Maximum size of a response, compressed and decompressed (default: depends on the content type).
            contact: Added to the user agent.
        """
        self._proxy = proxy
        self._max_bytes = max_bytes
        self._semaphore = semaphore
        self._deadline_s = deadline_s
        self._user_agent = f"{USER_AGENT} (+{contact})" if contact else USER_AGENT

    async def capture(self, url: str, *, max_bytes: int | None = None) -> Observation:
        """Capture a URL. ``max_bytes`` replaces that of the capturer."""
        max_bytes = max_bytes or self._max_bytes
        async with self._semaphore:
            began = time.monotonic()
            limit_s, late = time_limit(self._deadline_s)
            initial = Observation(
                url=url,
                outcome=CaptureOutcome.TIMEOUT,
                captured_at=utc_now(),
                duration_s=0.0,
                backend="http",
                detail=late,
                versions={"httpx": version("httpx")},
            )
            refusal = unfetchable_reason(url)
            if refusal is not None:
                return replace(initial, outcome=CaptureOutcome.UNSUPPORTED, detail=refusal)
            try:
                async with (
                    asyncio.timeout(limit_s),
                    self._proxy.proxy_port(max_bytes=max_bytes) as proxy_port,
                ):
                    seen = await self._fetch(initial, url, proxy_port, began + limit_s, max_bytes)
            except TimeoutError:
                seen = initial
            return replace(seen, duration_s=time.monotonic() - began)

    async def aclose(self) -> None:
        """Do nothing; no resources outlive a capture."""

    async def _fetch(
        self, initial: Observation, url: str, proxy_port: ProxyPort, deadline: float, max_bytes: int | None
    ) -> Observation:
        try:
            response = await self._get(url, proxy_port, max_bytes)
        except _FetchFailed as failed:
            return replace(
                initial,
                outcome=failed.failure.outcome,
                detail=failed.failure.detail,
                gone=failed.failure.gone,
                final_url=failed.url,
                chain=failed.chain,
            )
        left_s = max(1.0, deadline - time.monotonic() - 1.0)
        received = replace(
            initial,
            detail="",
            final_url=response.url,
            http_status=response.status,
            chain=response.chain,
            headers={name: value for name, value in response.headers.items() if name in STORED_HEADERS},
        )
        content_type = response.headers.get("content-type", "")
        seen = await read_content(received, response.content, content_type, deadline_s=left_s)
        if seen.outcome is CaptureOutcome.OK and not response.is_complete:
            return replace(seen, outcome=CaptureOutcome.PARTIAL, detail="the server's response is incomplete")
        return seen

    async def _get(self, url: str, proxy_port: ProxyPort, max_bytes: int | None) -> _Response:
        tls = await asyncio.to_thread(tls_context)
        headers = {"User-Agent": self._user_agent, "Accept-Encoding": ACCEPT_ENCODING, "Accept": "*/*"}
        timeout = httpx.Timeout(self._deadline_s)
        chain: list[str] = []
        async with httpx.AsyncClient(
            proxy=proxy_port.url,
            trust_env=False,
            verify=tls,
            headers=headers,
            timeout=timeout,
            event_hooks={"response": [_hide_location]},
        ) as client:
            while True:
                chain.append(url)
                try:
                    response = await _get_once(client, url, tuple(chain), max_bytes)
                except (httpx.HTTPError, httpx.InvalidURL) as failed:
                    failure = _http_failure(failed, proxy_port, url)
                    raise _FetchFailed(failure, url=url, chain=tuple(chain)) from failed
                refusal = proxy_port.refusal_of(url) if response.status in (403, 502) else None
                if refusal is not None:
                    raise _FetchFailed(failure_from_refusal(refusal), url=url, chain=tuple(chain))
                target = _redirect_target(response)
                if target is None:
                    return response
                url = _check_redirect(target, chain)


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of this process. Reading the CA certificates is slow."""
    return ssl.create_default_context()


async def _get_once(client: httpx.AsyncClient, url: str, chain: tuple[str, ...], max_bytes: int | None) -> _Response:
    async with client.stream("GET", url) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        location = str(response.extensions.get(_LOCATION, "")).strip()
        content, is_complete = b"", True
        is_redirect = status in REDIRECTS and location
        if not is_redirect:
            try:
                content, is_complete = await _read_body(response, headers, max_bytes)
            except DocumentRejected as rejected:
                failure = CaptureFailure(outcome=rejected.outcome, detail=rejected.detail)
                raise _FetchFailed(failure, url=url, chain=chain) from rejected
        return _Response(
            url=str(response.request.url),  # httpx resolves dot segments
            status=status,
            headers=headers,
            chain=chain,
            content=content,
            location=location if is_redirect else "",
            is_complete=is_complete,
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
    async for chunk in response.aiter_raw():
        inflater.feed(chunk)
    return inflater.content, inflater.is_complete


def _redirect_target(response: _Response) -> str | None:
    """Return the URL that a response redirects to. Spaces are escaped, as in browsers."""
    if not response.location:
        return None
    try:
        return urljoin(response.url, response.location.replace(" ", "%20"))
    except ValueError:
        return response.location


def _check_redirect(target: str, chain: list[str]) -> str:
    failure = failure_from_target(target)
    if failure is not None:
        raise _FetchFailed(failure, url=chain[-1], chain=tuple(chain))
    if len(chain) > MAX_REDIRECTS:
        failure = CaptureFailure(outcome=CaptureOutcome.REDIRECT_LOOP, detail=f"more than {MAX_REDIRECTS} redirects")
        raise _FetchFailed(failure, url=target, chain=tuple(chain))
    return target


def _http_failure(failed: httpx.HTTPError | httpx.InvalidURL, proxy_port: ProxyPort, url: str) -> CaptureFailure:
    refusal = proxy_port.refusal_of(url)
    if refusal is not None:
        return failure_from_refusal(refusal)
    if isinstance(failed, httpx.TimeoutException):
        return CaptureFailure(outcome=CaptureOutcome.TIMEOUT, detail="the server stopped responding")
    if _is_tls_error(failed):
        return CaptureFailure(outcome=CaptureOutcome.TLS_ERROR, detail=str(failed))
    return CaptureFailure(outcome=CaptureOutcome.CONNECT_ERROR, detail=str(failed) or type(failed).__name__)


def _is_tls_error(failed: BaseException | None) -> bool:
    while failed is not None:
        if isinstance(failed, ssl.SSLError):
            return True
        failed = failed.__cause__ or failed.__context__
    return False
