"""Interface of the DevTools protocol that captures need from a browser adapter.

Scripts run in an isolated world of the main document, which is created over the DevTools session. Closed shadow roots
that the browser resolves can be passed to the walker there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from cache.page_text.visible_text import FrameView


class PageLost(Exception):
    """The page, its browser or the connection was lost. Raised by DevTools implementations."""


class DevTools(Protocol):
    """DevTools session of one page. Raises PageLost.

    ``main_frame``: id of the main frame.
    """

    main_frame: str

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]: ...

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None: ...

    async def run(self, script: str, argument: object = None) -> Any:
        """Return the value of a JavaScript function, called in an isolated world of the main document."""


MAX_DEPTH = 4
"""Maximum nesting depth of closed shadow roots that are opened."""
_ATTEMPTS_ACROSS_NAVIGATIONS = 5
_INTERRUPTED_MESSAGES = (
    "context was destroyed",
    "Cannot find context",
    "Could not find object",
    "Promise was collected",
    "navigated or closed",
    "Execution was terminated",
)
_WORLD = "assay"
_READ_HOSTS = "() => globalThis.__assayHosts || []"
_SAVE_ROOT = "function () { (globalThis.__assayRoots ||= new Map()).set(this.host, this) }"

Children = Callable[[], Awaitable[Sequence[tuple[str, FrameView]]]]


class _World(NamedTuple):
    """Isolated world of one document: number, and id of its global object.

    After a navigation, the number may refer to another world, even that of the page's own scripts. The object does not.
    """

    number: int
    scope: str


class MainDocument:
    """FrameView of the main document, whichever it is at the time of a call. Raises PageLost if the page is closed."""

    def __init__(self, devtools: DevTools, children: Children) -> None:
        """``children`` returns the inner frames."""
        self._devtools = devtools
        self._children = children
        self._world: _World | None = None

    async def run(self, function: str, argument: object) -> Any:
        """Call the function, again after opening closed shadow roots. ``hosts`` in its result counts possible hosts."""
        value = await self.call(function, argument)
        for _ in range(MAX_DEPTH):
            if not value.get("hosts") or not await self._open_roots():
                break
            value = await self.call(function, argument)
        return value

    async def call(self, function: str, argument: object = None) -> Any:
        """Call the function once, in the same isolated world. If the page navigates meanwhile, call it again there."""
        for _ in range(_ATTEMPTS_ACROSS_NAVIGATIONS):
            try:
                return await self._call(await self._current_world(), function, argument)
            except PageLost as lost:
                self._world = None
                if not any(interrupted in str(lost) for interrupted in _INTERRUPTED_MESSAGES):
                    raise
        raise PageLost("the page navigates repeatedly")

    async def children(self) -> Sequence[tuple[str, FrameView]]:
        return await self._children()

    async def _current_world(self) -> _World:
        if self._world is None:
            created = await self._devtools.send(
                "Page.createIsolatedWorld", {"frameId": self._devtools.main_frame, "worldName": _WORLD}
            )
            number = int(created["executionContextId"])
            scope = await self._devtools.send("Runtime.evaluate", {"expression": "globalThis", "contextId": number})
            self._world = _World(number, str(scope["result"]["objectId"]))
        return self._world

    async def _call(self, world: _World, function: str, argument: object) -> Any:
        response = await self._devtools.send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": function,
                "objectId": world.scope,
                "arguments": [{"value": argument}],
                "returnByValue": True,
                "awaitPromise": True,
            },
        )
        if "exceptionDetails" in response:
            description = response["exceptionDetails"].get("exception", {}).get("description", "")
            raise PageLost(f"reading the page failed: {description[:300]}")
        return response["result"].get("value")

    async def _open_roots(self) -> int:
        """Pass the closed shadow roots of all possible hosts to the world. Return their number."""
        world = await self._current_world()
        listed = await self._devtools.send(
            "Runtime.callFunctionOn", {"functionDeclaration": _READ_HOSTS, "objectId": world.scope}
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
                "DOM.resolveNode", {"backendNodeId": root, "executionContextId": world.number}
            )
            await self._devtools.send(
                "Runtime.callFunctionOn",
                {"functionDeclaration": _SAVE_ROOT, "objectId": resolved["object"]["objectId"]},
            )
        return len(roots)
