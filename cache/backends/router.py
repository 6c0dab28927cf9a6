"""Routing and retries of captures.

The headless shell captures first. Full Chromium takes a second look only if there is a sign of blocking, and retries
pages on which the shell crashed. Temporary errors are retried once. The number of concurrent captures per host is
limited. See docs/decisions/0056-signs-of-blocking.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import structlog

from cache.backends.sibling_probe import SiblingProbe
from cache.capture import CaptureOutcome, Capturer, Observation
from cache.fair_limit import FairLimit
from cache.urls import host_and_port

_log = structlog.get_logger(__name__)

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
            global_slot: Acquires a slot for a host among all processes that capture.
            sleep: Waits before a retry.
        """
        self._first = first
        self._second = second
        self._sibling_probe = sibling_probe
        self._limit = limit or FairLimit(per_host=pages_per_host)
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
