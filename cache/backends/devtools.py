"""Interface of the DevTools protocol that captures need from a browser adapter.

The main document is read in an isolated world that is created over the DevTools session. Closed shadow roots that the
browser resolves can be passed to the walker there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from cache.page_text.visible_text import FrameView


class PageLost(Exception):
    """The page, its browser or the connection was lost. Raised by DevTools implementations."""


class DevTools(Protocol):
    """DevTools session of one page. Raises PageLost."""

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]: ...

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None: ...

    async def run(self, script: str, argument: object = None) -> Any:
        """Return the value of a JavaScript function, called in an isolated world of the main document."""


MAX_DEPTH = 4
"""Maximum nesting depth of closed shadow roots that are opened."""
_WORLD = "assay"
_READ_HOSTS = "() => globalThis.__assayHosts || []"
_SAVE_ROOT = "function () { (globalThis.__assayRoots ||= new Map()).set(this.host, this) }"

Children = Callable[[], Awaitable[Sequence[tuple[str, FrameView]]]]


class MainDocument:
    """FrameView of the main document. Raises PageLost if the page is closed."""

    def __init__(self, devtools: DevTools, main_frame: str, children: Children) -> None:
        """``main_frame``: id of the main frame. ``children`` returns the inner frames."""
        self._devtools = devtools
        self._main_frame = main_frame
        self._children = children

    async def run(self, function: str, argument: object) -> Any:
        """Call the function, again after opening closed shadow roots. ``hosts`` in its result counts possible hosts."""
        world = await self._create_world()
        value = await self._call(world, function, argument)
        for _ in range(MAX_DEPTH):
            if not value.get("hosts") or not await self._open_roots(world):
                break
            value = await self._call(world, function, argument)
        return value

    async def call(self, function: str, argument: object) -> Any:
        """Call the function once, in the same isolated world."""
        return await self._call(await self._create_world(), function, argument)

    async def children(self) -> Sequence[tuple[str, FrameView]]:
        return await self._children()

    async def _create_world(self) -> int:
        response = await self._devtools.send(
            "Page.createIsolatedWorld", {"frameId": self._main_frame, "worldName": _WORLD}
        )
        return int(response["executionContextId"])

    async def _call(self, world: int, function: str, argument: object) -> Any:
        response = await self._devtools.send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": function,
                "executionContextId": world,
                "arguments": [{"value": argument}],
                "returnByValue": True,
                "awaitPromise": True,
            },
        )
        if "exceptionDetails" in response:
            description = response["exceptionDetails"].get("exception", {}).get("description", "")
            raise PageLost(f"reading the page failed: {description[:300]}")
        return response["result"].get("value")

    async def _open_roots(self, world: int) -> int:
        """Pass the closed shadow roots of all possible hosts to the world. Return their number."""
        listed = await self._devtools.send(
            "Runtime.callFunctionOn", {"functionDeclaration": _READ_HOSTS, "executionContextId": world}
        )
        hosts = await self._devtools.send(
            "Runtime.getProperties", {"objectId": listed["result"]["objectId"], "ownProperties": True}
        )
        ids = [each["value"]["objectId"] for each in hosts["result"] if "objectId" in each.get("value", {})]
        described = await asyncio.gather(*(self._devtools.send("DOM.describeNode", {"objectId": one}) for one in ids))
        roots = [
            root["backendNodeId"]
            for each in described
            for root in each["node"].get("shadowRoots", ())
            if root.get("shadowRootType") == "closed"
        ]
        for root in roots:
            resolved = await self._devtools.send(
                "DOM.resolveNode", {"backendNodeId": root, "executionContextId": world}
            )
            await self._devtools.send(
                "Runtime.callFunctionOn",
                {"functionDeclaration": _SAVE_ROOT, "objectId": resolved["object"]["objectId"]},
            )
        return len(roots)
