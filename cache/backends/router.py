"""Routing and retries of captures.

The headless shell captures first. Full Chromium takes a second look only if there is a sign of blocking, and retries
pages on which the shell crashed. Temporary errors are retried once. The number of concurrent captures per host is
limited.

The soft 404 probe requests a random sibling URL of a page that may be a soft 404. It sends one small request through
the egress proxy. If the site shows the same content for both URLs, the page is a soft 404. If the site returns 404 or
410 for the random URL, the page may be real. Other results change nothing.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from urllib.parse import unquote, urlsplit

import structlog

from cache.backends.documents import read_html_safely
from cache.capture import CaptureOutcome, Capturer, Observation, PageKind, Renderer, Soft404Confidence
from cache.classify.quality import GONE_STATUSES
from cache.errors import BrowserUnavailable, DocumentRejected
from cache.pacing import FairLimit
from cache.urls import canonical_key, host_and_port

MIN_SIMILARITY = 0.9
"""Minimum similarity of two pages that are treated as the same."""

_MAX_CHARS = 200_000
# Each character counts as a token in scripts that put no spaces between words.
_TOKEN = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_REQUEST_ID = re.compile(r"(?=.*\d)\w{4,}")
_SUFFIX = re.compile(r"\.[A-Za-z]{2,5}$")


def random_segment() -> str:
    """Return a path segment that no existing page uses."""
    return secrets.token_hex(8)


def sibling_url(url: str, segment: str) -> str:
    """Return a URL in the same folder with ``segment`` as its last segment. File extension and slash are preserved.

    >>> sibling_url("https://a.com/news/story.html?from=x#top", "zq81")
    'https://a.com/news/zq81.html?from=x'
    >>> sibling_url("https://a.com/news/story/", "zq81"), sibling_url("https://a.com", "zq81")
    ('https://a.com/news/zq81/', 'https://a.com/zq81')
    """
    parts = urlsplit(url)
    slash = "/" if parts.path.endswith("/") and parts.path != "/" else ""
    folder, _, name = parts.path.removesuffix(slash).rpartition("/")
    suffix = _SUFFIX.search(name)
    return parts._replace(path=f"{folder}/{segment}{suffix[0] if suffix else ''}{slash}", fragment="").geturl()


def text_similarity(text: str, url: str, other_text: str, other_url: str) -> float:
    """Return the similarity of two texts from 0 to 1: Dice's coefficient of their pairs of adjacent words.

    Pairs are used because such pages are short: with 40 words, one different word reduces the value by 0.05 with pairs
    and by 0.08 with triples. Words of the pages' own URLs and request ids are ignored, because error pages often
    repeat them.
    """
    pairs, other = Counter(_pairs(text, url)), Counter(_pairs(other_text, other_url))
    total = pairs.total() + other.total()
    return 2 * (pairs & other).total() / total if total else 0.0


def _pairs(text: str, url: str) -> list[tuple[str, str]]:
    address = set(_tokens(unquote(urlsplit(url).path)))
    tokens = [token for token in _tokens(text) if token not in address and not _REQUEST_ID.fullmatch(token)]
    return list(pairwise(["", *tokens]))


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text[:_MAX_CHARS].casefold())


_log = structlog.get_logger(__name__)

PROBE_S = 4.0
"""Time limit for the capturer of the probe."""
PROBE_BYTES = 1024 * 1024
_TIMEOUT_S = 10.0
_READABLE = frozenset({CaptureOutcome.OK, CaptureOutcome.PARTIAL, CaptureOutcome.SOFT_404, CaptureOutcome.EMPTY})
_MAX_HTML_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeResult:
    """Result of the probe. ``same``: whether the content is the same, None if unknown. ``missing``: 404 or 410."""

    description: str
    same: bool | None = None
    missing: bool = False


class SiblingProbe:
    """Decides suspected soft 404s with a request to a sibling URL. ``capturer`` is closed by its owner."""

    def __init__(self, capturer: Capturer, *, timeout_s: float = _TIMEOUT_S) -> None:
        """``capturer`` has its own limits. ``timeout_s`` also includes its waiting time."""
        self._capturer = capturer
        self._timeout_s = timeout_s

    async def check(self, observation: Observation) -> Observation:
        """Return ``observation``, with another outcome if the response of the sibling URL is conclusive."""
        if observation.soft_404_confidence is None or not (
            observation.outcome is CaptureOutcome.SOFT_404 or observation.is_evidence
        ):
            return observation
        sibling = sibling_url(observation.url, random_segment())
        try:
            async with asyncio.timeout(self._timeout_s):
                sibling_page = await self._capturer.capture(sibling)
                text = await _comparable_text(observation, sibling_page)
                result = await asyncio.to_thread(_compare, observation, sibling_page, text)
        except TimeoutError:
            result = _ProbeResult(description="did not answer in time")
        outcome = _decide(observation, result)
        _log.info(
            "page sibling probed",
            url=observation.url,
            sibling=sibling,
            result=result.description,
            outcome=outcome.value,
        )
        detail = f"{observation.detail}; " * bool(observation.detail) + f"a random sibling URL {result.description}"
        return replace(observation, outcome=outcome, detail=detail)


def _decide(observation: Observation, result: _ProbeResult) -> CaptureOutcome:
    if result.same:
        return CaptureOutcome.SOFT_404
    is_reliable = (
        result.missing and (observation.http_status or 200) < 300 and not urlsplit(canonical_key(observation.url)).query
    )
    # If the query identifies the page, a 404 for another path proves nothing.
    return (
        CaptureOutcome.OK
        if is_reliable and observation.soft_404_confidence is Soft404Confidence.LIKELY
        else observation.outcome
    )


def _compare(observation: Observation, sibling_page: Observation, text: str) -> _ProbeResult:
    """Compare the page, with this text, with the response of the sibling URL. CPU-bound."""
    if sibling_page.http_status in GONE_STATUSES:
        return _ProbeResult(description=f"returns {sibling_page.http_status}", missing=True)
    if sibling_page.outcome not in _READABLE or sibling_page.kind is not PageKind.WEB:
        return _ProbeResult(description=f"ended with {sibling_page.outcome.value}")
    final_url, sibling_final_url = observation.final_url or observation.url, sibling_page.final_url or sibling_page.url
    if (
        _is_redirected(observation)
        and _is_redirected(sibling_page)
        and canonical_key(final_url) == canonical_key(sibling_final_url)
    ):
        return _ProbeResult(description="redirects to the same URL", same=True)
    similarity = text_similarity(text, observation.url, sibling_page.text, sibling_page.url)
    if similarity >= MIN_SIMILARITY:
        return _ProbeResult(description=f"shows the same content ({similarity:.2f})", same=True)
    return _ProbeResult(description=f"shows other content ({similarity:.2f})", same=False)


def _is_redirected(observation: Observation) -> bool:
    return canonical_key(observation.final_url or observation.url) != canonical_key(observation.url)


async def _comparable_text(observation: Observation, sibling_page: Observation) -> str:
    """Return the text of the page as extracted by the backend of the sibling, because two extractions differ."""
    html = observation.html
    if observation.backend == sibling_page.backend or html is None or len(html) > _MAX_HTML_BYTES:
        return observation.text
    try:
        text = html.decode("utf-8", errors="replace")
        return (await read_html_safely(text, observation.final_url or observation.url)).text
    except DocumentRejected:
        return observation.text


_BLOCKED_OUTCOMES = frozenset({CaptureOutcome.BLOCKED, CaptureOutcome.CAPTCHA})
TEMPORARY_STATUSES = frozenset({429, 502, 503, 504})
RETRY_S = 2.0
MAX_RETRY_AFTER_S = 10.0


class RoutedCapturer:
    """Capturer that delegates to one or two other capturers and closes them."""

    def __init__(
        self,
        first: Capturer,
        second: Capturer | None = None,
        *,
        sibling_probe: SiblingProbe | None = None,
        pages_per_host: int = 2,
        limit: FairLimit | None = None,
        renderer: Renderer | None = None,
        global_slot: Callable[[str], AbstractAsyncContextManager[object]] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create a capturer.

        Args:
            first: Captures first.
            second: Captures again if the result of ``first`` has a sign of blocking or is a crash.
            sibling_probe: Probes a random sibling URL if the page may be a soft 404.
            pages_per_host: Maximum number of concurrent captures per host.
            limit: Limit of concurrent captures, which replaces ``pages_per_host``.
            renderer: Renders supplied HTML within this limit.
            global_slot: Acquires a slot for a host among all processes that capture.
            sleep: Waits before a retry.
        """
        self._first = first
        self._second = second
        self._sibling_probe = sibling_probe
        self._limit = limit or FairLimit(per_host=pages_per_host)
        self._renderer = renderer
        self._global_slot = global_slot
        self._sleep = sleep

    async def capture(self, url: str) -> Observation:
        async with self._slot(url):
            observation = await self._capture_with_retries(url)
            return observation if self._sibling_probe is None else await self._sibling_probe.check(observation)

    async def capture_once(self, url: str) -> Observation:
        """Capture a URL with a single visit of the first capturer."""
        async with self._slot(url):
            return await self._first.capture(url)

    async def render(self, url: str, html: bytes) -> Observation:
        """Render supplied HTML as the page at ``url``. See ``cache.capture.Renderer``."""
        if self._renderer is None:
            raise BrowserUnavailable("no browser renders supplied pages")
        async with self._limit.slot(("", 0)):
            return await self._renderer.render(url, html)

    async def _capture_with_retries(self, url: str) -> Observation:
        observation = await self._first.capture(url)
        wait_s = _retry_wait_s(observation)
        if wait_s is not None:
            await self._sleep(wait_s)
            observation = await self._first.capture(url)
        if self._second is None or not (_has_sign_of_blocking(observation) or _has_crashed(observation)):
            return observation
        retried = await self._second.capture(url)
        _log.info("page recaptured", url=url, first=observation.outcome.value, second=retried.outcome.value)
        return retried if retried.is_evidence or _has_crashed(observation) else observation

    @asynccontextmanager
    async def _slot(self, url: str) -> AsyncIterator[None]:
        """Have a slot of this process, then one of the host among all processes."""
        try:
            host = host_and_port(url)
        except ValueError:
            host = ("", 0)
        shared = nullcontext() if self._global_slot is None else self._global_slot(f"{host[0]}:{host[1]}")
        async with self._limit.slot(host), shared:
            yield

    @property
    def sandboxed(self) -> bool | None:
        """False if a browser runs without its sandbox, True if one runs with it, None while none runs."""
        states = [getattr(each, "sandboxed", None) for each in (self._first, self._second)]
        return False if False in states else True if True in states else None

    async def aclose(self) -> None:
        try:
            await self._first.aclose()
        finally:
            if self._second is not None:
                await self._second.aclose()


def _has_sign_of_blocking(observation: Observation) -> bool:
    return observation.outcome in _BLOCKED_OUTCOMES or observation.may_be_blocked


def _has_crashed(observation: Observation) -> bool:
    """Return whether the browser crashed, so that nothing of the page was seen."""
    return observation.outcome is CaptureOutcome.CRASH


def _retry_wait_s(observation: Observation) -> float | None:
    """Return the wait time before a retry, or None if a retry is useless."""
    if observation.gone:
        return None
    if observation.outcome in (CaptureOutcome.CONNECT_ERROR, CaptureOutcome.DNS_ERROR):
        return RETRY_S
    if observation.http_status in TEMPORARY_STATUSES and not observation.is_evidence:
        retry_after = observation.headers.get("retry-after", "")
        wait_s = float(retry_after) if retry_after.isdigit() else RETRY_S
        return wait_s if wait_s <= MAX_RETRY_AFTER_S else None
    return None
