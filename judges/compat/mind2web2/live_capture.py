"""Looking at live pages outside the service: a guard and a browser that start at first use.

They live in an event loop of their own, in a thread: when the user's loop ends without having closed them, its tasks
are cancelled, and a browser's driver that ran among those could not be closed any more.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack

from cache.backends.browser_search import find_browser
from cache.backends.http import HttpCapturer
from cache.backends.patchright import BrowserCapturer
from cache.backends.router import RoutedCapturer
from cache.backends.sibling_probe import PROBE_BYTES, PROBE_S, SiblingProbe
from cache.capture import Capturer, Observation
from cache.egress.guard import EgressGuard
from cache.errors import BrowserUnavailable
from mind2web2.environment import browser_path, browser_unsandboxed, egress_allow
from mind2web2.loop_end import at_end_of_loop


class LiveCapture:
    """Captures pages through the egress guard. To be used from one event loop at a time."""

    def __init__(self, *, max_pages: int = 5) -> None:
        """``max_pages`` are captured side by side at most."""
        self._max_pages = max_pages
        self._running: _CaptureThread | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def observe(self, url: str) -> Observation:
        """What is to be seen at a URL now.

        Raises:
            cache.errors.BrowserUnavailable: nothing can be captured on this machine.
        """
        return await (await self._started()).capture(url)

    async def open(self) -> None:
        """Start, unless it runs already.

        Raises:
            cache.errors.BrowserUnavailable: nothing can be captured on this machine.
        """
        await (await self._started()).ready()

    async def aclose(self) -> None:
        """Stop; a later use starts anew."""
        running, keeper = self._running, self._keeper
        self._running = self._keeper = None
        if keeper is not None and keeper.get_loop() is asyncio.get_running_loop():
            keeper.cancel()
            await asyncio.wait([keeper])
        if running is not None:
            await running.stop()

    async def _started(self) -> _CaptureThread:
        loop = asyncio.get_running_loop()
        if self._running is None or self._keeper is None or self._keeper.get_loop() is not loop:
            await self.aclose()
            self._running = _CaptureThread(self._max_pages)
            self._keeper = at_end_of_loop(self._running.stop)
        return self._running


class _CaptureThread:
    """The thread with the browser's event loop."""

    def __init__(self, max_pages: int) -> None:
        self._max_pages = max_pages
        self._opened: Future[Capturer] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="live-capture", daemon=True)
        self._thread.start()

    async def ready(self) -> Capturer:
        return await asyncio.shield(asyncio.wrap_future(self._opened))

    async def capture(self, url: str) -> Observation:
        capturer = await self.ready()
        if self._loop is None or self._loop.is_closed():
            raise BrowserUnavailable("the browser's thread has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(capturer.capture(url), self._loop))

    async def stop(self) -> None:
        """End the browser and the thread; harmless when they have ended."""
        try:
            await self.ready()
        except BrowserUnavailable:
            pass  # the browser did not start; its thread has ended
        else:
            if self._loop is not None and self._closing is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._closing.set)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            if not self._opened.done():
                self._opened.set_exception(BrowserUnavailable("the browser's thread ended before it was ready"))

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            try:
                capturer = await _open_capturer(stack, self._max_pages)
            except (BrowserUnavailable, OSError, ValueError) as error:
                failure = BrowserUnavailable(str(error))
                failure.__cause__ = error
                self._opened.set_exception(failure)
                return
            self._opened.set_result(capturer)
            await self._closing.wait()


async def _open_capturer(stack: AsyncExitStack, max_pages: int) -> Capturer:
    """The quick browser first and the whole one for a second look, as far as there are both."""
    found = await asyncio.to_thread(find_browser, browser_path())
    programs = [program for program in (found.shell, found.full) if program is not None]
    if not programs:
        looked_in = ", ".join(map(str, found.looked_in))
        raise BrowserUnavailable(found.problem or f"there is no Chromium in {looked_in}; ASSAY_BROWSER can name one")
    guard = await stack.enter_async_context(EgressGuard(egress_allow()))
    slots = asyncio.Semaphore(max_pages)
    unsandboxed = browser_unsandboxed()
    first, *others = (
        BrowserCapturer(program, guard, semaphore=slots, allow_unsandboxed=unsandboxed) for program in programs
    )
    probe = HttpCapturer(guard, semaphore=asyncio.Semaphore(max_pages), deadline_s=PROBE_S, max_bytes=PROBE_BYTES)
    capturer = RoutedCapturer(first, next(iter(others), None), siblings=SiblingProbe(probe))
    stack.push_async_callback(capturer.aclose)
    return capturer
