"""Looking at live pages outside the service: a guard and a browser that start at first use and end with the loop.

Whoever uses it may forget to close it, as most judge scripts do: a task owns the guard and the browser, so that
``asyncio.run``, which cancels what is left, closes them too.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from cache.backends.patchright import BrowserCapturer
from cache.backends.router import RoutedCapturer
from cache.browser_search import find_browser
from cache.capture import Capturer, Observation
from cache.egress import EgressGuard
from cache.errors import BrowserUnavailable
from mind2web2.environment import browser_path, egress_allow


class LiveCapture:
    """Captures pages through the egress guard. Usable from one event loop at a time."""

    def __init__(self, *, max_pages: int = 5) -> None:
        """``max_pages`` are captured side by side at most."""
        self._max_pages = max_pages
        self._keeper: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Capturer] | None = None
        self._closing: asyncio.Event | None = None

    async def observe(self, url: str) -> Observation:
        """What is to be seen at a URL now.

        Raises:
            cache.errors.BrowserUnavailable: nothing can be captured on this machine.
        """
        return await (await self.open()).capture(url)

    async def open(self) -> Capturer:
        """Start, unless it runs already.

        Raises:
            cache.errors.BrowserUnavailable: nothing can be captured on this machine.
        """
        loop = asyncio.get_running_loop()
        if self._keeper is None or self._opened is None or self._keeper.done() or self._keeper.get_loop() is not loop:
            self._opened = loop.create_future()
            self._closing = asyncio.Event()
            self._keeper = loop.create_task(self._keep(self._opened, self._closing), name="live-capture")
        return await asyncio.shield(self._opened)

    async def aclose(self) -> None:
        """Stop; a later use starts anew."""
        keeper, closing = self._keeper, self._closing
        self._keeper = self._opened = self._closing = None
        if keeper is not None and closing is not None and keeper.get_loop() is asyncio.get_running_loop():
            closing.set()
            await asyncio.wait([keeper])

    async def _keep(self, opened: asyncio.Future[Capturer], closing: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            try:
                capturer = await _open_capturer(stack, self._max_pages)
            except BaseException as error:
                if not opened.cancelled():
                    opened.set_exception(error)
                    opened.exception()  # seen, also when nobody waits any more
                raise
            opened.set_result(capturer)
            await closing.wait()


async def _open_capturer(stack: AsyncExitStack, max_pages: int) -> Capturer:
    """The quick browser first and the whole one for a second look, as far as there are both."""
    found = await asyncio.to_thread(find_browser, browser_path())
    programs = [program for program in (found.shell, found.full) if program is not None]
    if not programs:
        looked_in = ", ".join(map(str, found.looked_in))
        raise BrowserUnavailable(found.problem or f"there is no Chromium in {looked_in}; ASSAY_BROWSER can name one")
    guard = await stack.enter_async_context(EgressGuard(egress_allow()))
    slots = asyncio.Semaphore(max_pages)
    first, *others = (BrowserCapturer(program, guard, semaphore=slots) for program in programs)
    capturer = RoutedCapturer(first, next(iter(others), None))
    stack.push_async_callback(capturer.aclose)
    return capturer
