"""External services, used directly by this process: the web, a browser, decoding programs and keys.

They run in an event loop in their own thread. If the caller's loop ends without closing them, it cancels its tasks, and
a browser driver among those tasks could not be closed any more.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

from cache.backends.browser_search import find_browser
from cache.backends.documents import Document, read_document
from cache.backends.http import HttpCapturer
from cache.backends.patchright import BrowserCapturer
from cache.backends.readiness import MAX_SCROLLED_PX
from cache.backends.router import PROBE_BYTES, PROBE_S, RoutedCapturer, SiblingProbe
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy
from cache.errors import BrowserUnavailable
from judges.late_libraries import googlemaps
from judges.llm.client import LLMClient
from mind2web2.environment import browser_path, browser_unsandboxed, egress_allow, required_key
from mind2web2.live_browser import DEADLINE_S, LiveBrowser
from mind2web2.loop_cleanup import close_with_loop


class LocalServices:
    """External services, used directly with the keys in the environment."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        async with EgressProxy(egress_allow()) as proxy:
            return await HttpCapturer(proxy, semaphore=asyncio.Semaphore(1), deadline_s=deadline_s).capture(url)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int, *, deadline_s: float = DEADLINE_S) -> LiveBrowser:
        return LiveCapture(max_pages=max_pages, deadline_s=deadline_s)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        from mind2web2.api_session import api_session

        # Retries after API faults at most double the time.
        return googlemaps.Client(
            key=required_key("GOOGLE_MAPS_API_KEY"),
            timeout=timeout_s,
            retry_timeout=2 * timeout_s,
            requests_session=api_session(),
            base_url=base_url,
        )

    def model(self, provider: str) -> LLMClient | None:
        return None


class StoredPagesOnly(LocalServices):
    """External services of a run that captures no pages: each page is reported as not stored. The Maps API is used.

    It is its own browser.
    """

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        return await self.observe(url)

    def live_pages(self, max_pages: int, *, deadline_s: float = DEADLINE_S) -> LiveBrowser:
        return self

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        return Observation(
            url=url,
            outcome=CaptureOutcome.NOT_STORED,
            captured_at=datetime.now(UTC),
            duration_s=0.0,
            backend="none",
            detail="this run captures no pages",
        )

    async def open(self) -> None:
        """Do nothing: there is no browser."""

    aclose = open


class LiveCapture:
    """Captures pages through the egress proxy. Use it from one event loop at a time."""

    def __init__(self, *, max_pages: int = 5, deadline_s: float = DEADLINE_S) -> None:
        """``max_pages`` is the maximum number of concurrent captures, ``deadline_s`` the time limit of a visit."""
        self._max_pages = max_pages
        self._deadline_s = deadline_s
        self._running: _CaptureThread | None = None
        self._closing_task: asyncio.Task[None] | None = None

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        """Capture a URL now. ``once``: visit it only once, even if that fails.

        Raises:
            cache.errors.BrowserUnavailable: no browser can be started.
        """
        return await (await self._started()).capture(url, once=once)

    async def open(self) -> None:
        """Start the browser unless it runs.

        Raises:
            cache.errors.BrowserUnavailable: no browser can be started.
        """
        await (await self._started()).ready()

    async def aclose(self) -> None:
        """Stop the browser. A later use starts it again."""
        running, closing_task = self._running, self._closing_task
        self._running = self._closing_task = None
        if closing_task is not None and closing_task.get_loop() is asyncio.get_running_loop():
            closing_task.cancel()
            await asyncio.wait([closing_task])
        if running is not None:
            await running.stop()

    async def _started(self) -> _CaptureThread:
        loop = asyncio.get_running_loop()
        if self._running is None or self._closing_task is None or self._closing_task.get_loop() is not loop:
            await self.aclose()
            self._running = _CaptureThread(self._max_pages, self._deadline_s)
            self._closing_task = close_with_loop(self._running.stop)
        return self._running


class _CaptureThread:
    """Thread that runs the browser's event loop."""

    def __init__(self, max_pages: int, deadline_s: float) -> None:
        self._max_pages = max_pages
        self._deadline_s = deadline_s
        self._opened: Future[RoutedCapturer] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="live-capture", daemon=True)
        self._thread.start()

    async def ready(self) -> RoutedCapturer:
        return await asyncio.shield(asyncio.wrap_future(self._opened))

    async def capture(self, url: str, *, once: bool) -> Observation:
        capturer = await self.ready()
        if self._loop is None or self._loop.is_closed():
            raise BrowserUnavailable("the browser's thread has stopped")
        captured = capturer.capture_once(url) if once else capturer.capture(url)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(captured, self._loop))

    async def stop(self) -> None:
        """Stop the browser and the thread. Does nothing if they have stopped."""
        try:
            await self.ready()
        except BrowserUnavailable:
            pass  # the browser did not start, and its thread has stopped
        else:
            if self._loop is not None and self._closing is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._closing.set)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            if not self._opened.done():
                self._opened.set_exception(BrowserUnavailable("the browser's thread stopped before it was ready"))

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            try:
                capturer = await _open_capturer(stack, self._max_pages, self._deadline_s)
            except (BrowserUnavailable, OSError, ValueError) as error:
                failure = BrowserUnavailable(str(error))
                failure.__cause__ = error
                self._opened.set_exception(failure)
                return
            self._opened.set_result(capturer)
            await self._closing.wait()


async def _open_capturer(stack: AsyncExitStack, max_pages: int, deadline_s: float) -> RoutedCapturer:
    """Open a capturer that uses the headless shell first and the full browser for retries, if both are installed.

    Screenshots show the whole page, up to the height to which pages are scrolled.
    """
    browser = await asyncio.to_thread(find_browser, browser_path())
    programs = [program for program in (browser.shell, browser.full) if program is not None]
    if not programs:
        problem = browser.problem or f"no Chromium found in {', '.join(map(str, browser.searched_paths))}"
        raise BrowserUnavailable(f"{problem}; set ASSAY_BROWSER to the path of Chromium")
    proxy = await stack.enter_async_context(EgressProxy(egress_allow()))
    slots = asyncio.Semaphore(max_pages)
    unsandboxed = browser_unsandboxed()
    first, *others = (
        BrowserCapturer(
            program,
            proxy,
            semaphore=slots,
            deadline_s=deadline_s,
            allow_unsandboxed=unsandboxed,
            max_height_px=MAX_SCROLLED_PX,
        )
        for program in programs
    )
    probe = HttpCapturer(proxy, semaphore=asyncio.Semaphore(max_pages), deadline_s=PROBE_S, max_bytes=PROBE_BYTES)
    capturer = RoutedCapturer(first, next(iter(others), None), sibling_probe=SiblingProbe(probe))
    stack.push_async_callback(capturer.aclose)
    return capturer
