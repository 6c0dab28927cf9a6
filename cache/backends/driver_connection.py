"""Connection to the browser driver, without work of the library that captures do not need.

For each command, the library looks up the source lines of its callers, for its own error messages and traces. It copies
what it has of a message every 32 KiB, which takes longest for screenshots.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from traceback import FrameSummary, StackSummary
from typing import Any

from patchright._impl._connection import Connection
from patchright._impl._object_factory import create_remote_object
from patchright._impl._transport import PipeTransport
from patchright.async_api import Playwright
from patchright.async_api._context_manager import PlaywrightContextManager

_CALLER = StackSummary.from_list([FrameSummary(__name__, 0, "", lookup_line=False, line="")])


class DriverManager(PlaywrightContextManager):
    """Replacement of the library's ``async_playwright()`` with the connection below."""

    async def __aenter__(self) -> Playwright:
        loop = asyncio.get_running_loop()
        transport = _Transport(loop)
        self._connection = _Connection(None, create_remote_object, transport, loop)
        self._running = loop.create_task(self._connection.run())
        started = self._connection.playwright_future
        await asyncio.wait({transport.on_error_future, started}, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            transport.on_error_future.result()
        return Playwright(started.result())


class _Connection(Connection):
    """Connection that does not look up callers."""

    async def wrap_api_call(self, cb: Callable[[], Any], is_internal: bool = False, title: Any = None) -> Any:
        task: Any = asyncio.current_task()
        # The library uses these instead of the stack, if they are set.
        task.__pw_stack__ = {"frames": [], "apiName": "browser", "title": None}
        task.__pw_stack_trace__ = _CALLER
        return await super().wrap_api_call(cb, is_internal, title)


class _Transport(PipeTransport):
    """Transport that reads each message at once."""

    def deserialize_message(self, data: str | bytes) -> Any:
        return json.loads(data)

    async def run(self) -> None:
        stream: Any = self._proc.stdout
        try:
            with suppress(asyncio.IncompleteReadError):
                while not self._stopped:
                    size = int.from_bytes(await stream.readexactly(4), "little")
                    message = await stream.readexactly(size)
                    if not self._stopped:
                        self.on_message(self.deserialize_message(message))
                    await asyncio.sleep(0)
            if not self._stopped:
                self.on_error_future.set_exception(Exception("Connection closed while reading from the driver"))
            await self._proc.communicate()
        finally:
            if not self._stopped_future.done():
                self._stopped_future.set_result(None)
