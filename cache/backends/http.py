"""Capturing without a browser: one GET through the guard, and what the bytes are decides.

PDF, images and plain text come out as well as through the browser. HTML is converted to text as it was sent:
what scripts would have added is not there, and nobody has seen it, so there is no screenshot.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from urllib.parse import urljoin

import httpx

from cache.backends.documents import ByteKind, byte_limit, decode_text, read_document, sniff
from cache.backends.endings import KEPT_HEADERS, MAX_HOP_CHARS, MAX_REDIRECTS, Ending, of_refusal
from cache.backends.inflate import ACCEPTED, BoundedInflater
from cache.backends.plain_html import read_html
from cache.capture import CaptureOutcome, Observation
from cache.egress import EgressGuard, Lane
from cache.errors import DocumentRejected
from cache.pages import utc_now
from cache.quality import PageFacts, classify
from cache.urls import why_unfetchable

DEADLINE_S = 60.0
USER_AGENT = "Mozilla/5.0 (compatible; assay; checks cited pages)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    url: str
    status: int
    headers: dict[str, str]
    chain: tuple[str, ...]
    content: bytes


class _Ended(Exception):
    """The fetch is over without a response. Never leaves this module."""

    def __init__(self, ending: Ending, *, url: str, chain: tuple[str, ...]) -> None:
        super().__init__(ending.detail)
        self.ending = ending
        self.url = url
        self.chain = chain


class HttpCapturer:
    """Implements Capturer. ``semaphore`` is taken around each capture."""

    def __init__(
        self,
        guard: EgressGuard,
        *,
        semaphore: asyncio.Semaphore,
        deadline_s: float = DEADLINE_S,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._guard = guard
        self._semaphore = semaphore
        self._deadline_s = deadline_s
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
                detail=f"nothing in {self._deadline_s:g} s",
                versions={"httpx": version("httpx")},
            )
            try:
                async with asyncio.timeout(self._deadline_s), self._guard.lane() as lane:
                    seen = await self._observe(blank, url, lane, began)
            except TimeoutError:
                seen = blank
            return replace(seen, duration_s=time.monotonic() - began)

    async def aclose(self) -> None:
        """Nothing outlives a capture."""

    async def _observe(self, blank: Observation, url: str, lane: Lane, began: float) -> Observation:
        try:
            response = await self._get(url, lane)
        except _Ended as ended:
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
        return await _described(arrived, response, left_s)

    async def _get(self, url: str, lane: Lane) -> _Response:
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPTED, "Accept": "*/*"}
        timeout = httpx.Timeout(self._deadline_s)
        chain: list[str] = []
        async with httpx.AsyncClient(
            proxy=lane.url, trust_env=False, verify=self._tls, headers=headers, timeout=timeout
        ) as client:
            while True:
                chain.append(url)
                try:
                    response = await _get_once(client, url, tuple(chain))
                except httpx.HTTPError as failed:
                    ending = _of_http_error(failed, lane, url)
                    raise _Ended(ending, url=url, chain=tuple(chain)) from failed
                refusal = lane.refusal_of(url) if response.status in (403, 502) else None
                if refusal is not None:
                    raise _Ended(of_refusal(refusal), url=url, chain=tuple(chain))
                target = _redirect_target(response)
                if target is None:
                    return response
                url = _checked(target, chain)


async def _get_once(client: httpx.AsyncClient, url: str, chain: tuple[str, ...]) -> _Response:
    async with client.stream("GET", url) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        content = b""
        if status not in _REDIRECTS:
            try:
                content = await _content(response, headers)
            except DocumentRejected as rejected:
                ending = Ending(outcome=rejected.outcome, detail=rejected.detail)
                raise _Ended(ending, url=url, chain=chain) from rejected
        return _Response(url=url, status=status, headers=headers, chain=chain, content=content)


async def _content(response: httpx.Response, headers: dict[str, str]) -> bytes:
    content_type = headers.get("content-type", "")
    inflater = BoundedInflater(headers.get("content-encoding", ""), lambda head: byte_limit(head, content_type))
    async for wire in response.aiter_raw():
        inflater.feed(wire)
    return inflater.content


def _redirect_target(response: _Response) -> str | None:
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or not location:
        return None
    return urljoin(response.url, location)


def _checked(target: str, chain: list[str]) -> str:
    refusal = why_unfetchable(target, max_chars=MAX_HOP_CHARS)
    if refusal is not None:
        ending = Ending(outcome=CaptureOutcome.EGRESS_DENIED, detail=f"redirect to {target[:100]}: {refusal}")
        raise _Ended(ending, url=chain[-1], chain=tuple(chain))
    if len(chain) > MAX_REDIRECTS:
        ending = Ending(outcome=CaptureOutcome.REDIRECT_LOOP, detail=f"more than {MAX_REDIRECTS} redirects")
        raise _Ended(ending, url=target, chain=tuple(chain))
    return target


def _of_http_error(failed: httpx.HTTPError, lane: Lane, url: str) -> Ending:
    refusal = lane.refusal_of(url)
    if refusal is not None:
        return of_refusal(refusal)
    if isinstance(failed, httpx.TimeoutException):
        return Ending(outcome=CaptureOutcome.TIMEOUT, detail="the server stopped answering")
    if _is_tls(failed):
        return Ending(outcome=CaptureOutcome.TLS_ERROR, detail=str(failed))
    return Ending(outcome=CaptureOutcome.CONNECT_ERROR, detail=str(failed) or type(failed).__name__)


def _is_tls(failed: BaseException | None) -> bool:
    while failed is not None:
        if isinstance(failed, ssl.SSLError):
            return True
        failed = failed.__cause__ or failed.__context__
    return False


async def _described(arrived: Observation, response: _Response, left_s: float) -> Observation:
    """The observation of a response that came whole."""
    content_type = response.headers.get("content-type", "")
    kind = sniff(response.content, content_type)
    if response.status >= 400 or kind is ByteKind.HTML:
        html = decode_text(response.content, content_type) if kind in (ByteKind.HTML, ByteKind.TEXT) else ""
        page = await asyncio.to_thread(read_html, html, response.url)
        facts = PageFacts(
            url=arrived.url,
            final_url=response.url,
            status=response.status,
            title=page.title,
            headlines=page.headlines,
            text=page.text,
            html=html,
            has_password_field=page.has_password_field,
            login_form_chars=page.login_form_chars,
            inputs=page.inputs,
            links=len(page.links),
            large_images=page.images,
        )
        finding = classify(facts)
        return replace(
            arrived,
            outcome=finding.outcome,
            detail=finding.detail,
            gone=finding.gone,
            title=page.title,
            text=page.text,
            links=page.links,
            html=response.content,
        )
    try:
        document = await read_document(response.content, content_type, deadline_s=left_s)
    except DocumentRejected as rejected:
        return replace(arrived, outcome=rejected.outcome, detail=rejected.detail)
    return document.observed_as(arrived)
