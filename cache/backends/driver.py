"""Driver process of the browser library: start, and stop without leftovers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import structlog

_log = structlog.get_logger(__name__)

_STOP_S = 1.0
_POLL_S = 0.01


class Driver:
    """Driver process: a child process that passes commands to the browser."""

    def __init__(self, manager: Any) -> None:
        """``manager`` is what the library's ``async_playwright()`` returns."""
        self._manager = manager

    async def start(self) -> Any:
        """Start the driver. If this fails or is cancelled, no process or task is left behind.

        The library makes a cancelled command wait for the driver's confirmation. If the start itself is cancelled,
        that confirmation is never read, and the event loop could not be closed.
        """
        starting = asyncio.ensure_future(self._manager.start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _wait_until_done(asyncio.ensure_future(self._abandon(starting)))
            raise

    async def stop(self) -> None:
        """Ask the driver to exit; kill it if it does not do so in time."""
        stopping = asyncio.ensure_future(self._manager.__aexit__())
        try:
            await asyncio.wait({stopping}, timeout=_STOP_S)
        finally:
            if not stopping.done():
                _log.info("browser_driver_killed")
                self._kill()
                await _wait_until_done(stopping)

    async def _abandon(self, starting: asyncio.Future[Any]) -> None:
        while not starting.done() and not self._kill():  # there may be no process yet
            await asyncio.wait({starting}, timeout=_POLL_S)
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await self.stop()

    def _kill(self) -> bool:
        """Kill the process. Return whether there is one. The library has no call for this."""
        process = getattr(self._manager._connection._transport, "_proc", None)
        if process is None:
            return False
        with suppress(ProcessLookupError):
            process.kill()
        return True


async def _wait_until_done(ending: asyncio.Future[None]) -> None:
    """Wait for a task that ends soon. Ignores cancellation, because the caller is already ending."""
    while not ending.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({ending})
