"""When a page is ready: loaded, its late timers run, its lazy parts brought in. By events, not by fixed sleeps.

What a page would do in the next seconds is not waited for but brought forward: its clock is run ahead, standing
still whenever a request is open, so that text added five seconds late costs milliseconds. Lazy parts are brought
in by growing the viewport to the page's height and telling the page it was scrolled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cache.backends.devtools import DevTools
from cache.backends.navigation import Navigation
from cache.in_page import script

WIDTH_PX = 1280
HEIGHT_PX = 800
MAX_GROWN_PX = 11_636
MAX_SCROLLED_PX = 30_000
LOAD_S = 15.0
LATE_MS = 6000
_AHEAD_REAL_S = 6.0
_STUCK_REAL_S = 2.0
_MORE_MS = 1500
_ROUNDS = 3
_WAIT_REAL_S = 5.0
_QUIET_S = 1.0
_POLL_S = 0.25
_FRAMES_REAL_S = 0.08
_FLOODED_S = 4.0
_MAX_RESTARTS = 5
_EMPTY_CHARS = 50
_LITTLE_CHARS = 300
_GROWTH = 1.1

_WITH_A_CLOCK = ("worker", "shared_worker")
_WORKERS_TOO = {
    "autoAttach": True,
    "waitForDebuggerOnStart": False,
    "flatten": True,
    "filter": [{"type": kind} for kind in _WITH_A_CLOCK],
}
_PARSED = """() => document.readyState !== "loading" ||
  new Promise((resolve) => document.addEventListener("DOMContentLoaded", () => resolve(true), { once: true }))"""
_LOADED = """() => document.readyState === "complete" ||
  new Promise((resolve) => addEventListener("load", () => resolve(true), { once: true }))"""
_DRAWN = "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true))))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How ready the page became. ``cut`` says what was still missing, empty when nothing was."""

    height_px: int
    viewport_px: int
    cut: str = ""


class Settling:
    """Brings one page to rest. ``deadline`` is on the monotonic clock; what is not done by then is left."""

    def __init__(
        self,
        devtools: DevTools,
        navigation: Navigation,
        *,
        deadline: float,
        flooded_at: Callable[[], float | None] = lambda: None,
    ) -> None:
        """``flooded_at``: when the page had asked a host that is refused too often; it is not waited for long after."""
        self._flooded_at = flooded_at
        self._devtools = devtools
        self._navigation = navigation
        self._deadline = deadline
        self._viewport_px = HEIGHT_PX
        self._expired = asyncio.Event()
        self._speaks_since = float("-inf")
        """When the page last began to listen to what has a clock of its own: a socket or a worker."""
        devtools.on("Emulation.virtualTimeBudgetExpired", lambda event: self._expired.set())
        devtools.on("Network.webSocketCreated", self._on_speaker)
        devtools.on("Target.attachedToTarget", self._on_target)

    async def run(self) -> Readiness:
        """Settle the page; nothing late or lazy is awaited of an error. Raises PageLost when it goes away."""
        await self._devtools.send("Target.setAutoAttach", _WORKERS_TOO)
        parsed = await self._arrive()
        self._navigation.hold()
        if self._navigation.failed or self._navigation.taken.is_set():
            height = int((await self._measure())["height"])
        else:
            height = await self._bring_in()
            await self._wait_for_promises()
        late = "the deadline came first" if self._deadline <= time.monotonic() else ""
        cut = late if parsed else "the document was still arriving"
        return Readiness(height_px=height, viewport_px=self._viewport_px, cut=cut)

    async def _arrive(self) -> bool:
        """Wait for the document, and for the one it sends on to; whether it came whole.

        A page with something to read is held as soon as that is known: it is what was cited, wherever it would
        go next. One with next to nothing may be an announcement that one will be sent on, and may go there.
        """
        parsed = False
        for _ in range(_MAX_RESTARTS):
            self._navigation.restarted.clear()
            parsed = await self._reached(_PARSED)
            if (await self._measure())["chars"] >= _LITTLE_CHARS:
                self._navigation.hold()
            await self._reached(_LOADED)
            if not self._navigation.restarted.is_set() and (await self._measure())["chars"] < _LITTLE_CHARS:
                await self._run_ahead(LATE_MS, real_s=_AHEAD_REAL_S)
            if not self._navigation.restarted.is_set() or self._navigation.ending is not None:
                break
            await self._next_document()
            if self._navigation.taken.is_set():
                break
        return parsed

    async def _reached(self, state: str) -> bool:
        """Wait for a state of the document as long as it makes sense; whether it was reached."""
        asked = asyncio.ensure_future(self._devtools.run(state))
        stopped = asyncio.ensure_future(self._navigation.stopped.wait())
        try:
            until = time.monotonic() + LOAD_S
            while (left_s := min(until - time.monotonic(), self._left_s())) > 0:
                await asyncio.wait({asked, stopped}, timeout=min(_POLL_S, left_s), return_when=asyncio.FIRST_COMPLETED)
                if asked.done() or stopped.done():
                    break
            return asked.done() and bool(asked.result())
        finally:
            stopped.cancel()
            asked.cancel()

    async def _next_document(self) -> None:
        """Wait for the document that the page sends on to."""
        try:
            async with asyncio.timeout(min(LOAD_S, self._left_s())):
                await self._navigation.come.wait()
        except TimeoutError:
            return  # what is there stays the page

    async def _bring_in(self) -> int:
        """Late and lazy parts, round after round while the page grows. The page's height in the end."""
        seen = await self._measure()
        height = int(seen["height"])
        for round_number in range(_ROUNDS):
            stretches = await self._grow_to(height + int(seen["inner"]), height) and not seen["inner"]
            await self._run_ahead(LATE_MS if round_number == 0 else _MORE_MS, real_s=_AHEAD_REAL_S)
            seen = await self._measure()
            if stretches:
                # As tall as its window, however tall that is: it is shown in an ordinary one.
                await self._grow(HEIGHT_PX)
                return int((await self._measure())["height"])
            if int(seen["height"]) <= _GROWTH * height or self._left_s() <= 0:
                break
            height = int(seen["height"])
        height = int(seen["height"])
        if height > MAX_GROWN_PX:
            height = await self._scroll_on(MAX_GROWN_PX, height)
        await self._grow_to(height, height)
        return height

    async def _grow_to(self, wanted_px: int, height_px: int) -> bool:
        """Grow the viewport, never shrink it; whether the page grew with it at once."""
        wanted = min(wanted_px, MAX_GROWN_PX)
        return wanted > self._viewport_px and await self._grow(wanted) > _GROWTH * height_px

    async def _scroll_on(self, step: int, height: int) -> int:
        """Beyond what a viewport can grow to, real scrolling."""
        top = step
        while top < min(height, MAX_SCROLLED_PX) and self._left_s() > 0:
            height = int(await self._devtools.run(script("scrolled"), top))
            await self._drawn()
            await self._run_ahead(_MORE_MS, real_s=_STUCK_REAL_S)
            top += step
        await self._devtools.run(script("scrolled"), 0)
        return int((await self._measure())["height"])

    async def _wait_for_promises(self) -> None:
        """Real time for what no clock brings forward: a page that says it is loading, shows next to nothing, listens to
        a socket or a worker, or writes its text frame by frame."""
        first, last = -1, -1
        came = until = time.monotonic()
        until += min(_WAIT_REAL_S, self._left_s())
        while (now := time.monotonic()) < until:
            seen = await self._measure()
            chars = int(seen["chars"])
            first, came = (chars if first < 0 else first), (now if chars != last else came)
            spoken = (chars != first and now - came >= _QUIET_S) or now - self._speaks_since >= _WAIT_REAL_S
            enough = not seen["waiting"] and chars >= _EMPTY_CHARS and spoken
            if enough and last in (-1, chars) and not await self._changes():
                return
            last = chars
            await self._run_ahead(int(_POLL_S * 1000), real_s=_POLL_S)
            await asyncio.sleep(_POLL_S)  # a socket or a worker may bring it, and those have no event to wait for

    def _on_speaker(self, event: dict[str, Any]) -> None:
        self._speaks_since = time.monotonic()

    def _on_target(self, event: dict[str, Any]) -> None:
        if event["targetInfo"]["type"] in _WITH_A_CLOCK:
            self._on_speaker(event)

    async def _changes(self) -> int:
        """How often text changes while a few frames are drawn. Not waited for by a frame: there may come none."""
        await self._devtools.run(script("changes"))
        await asyncio.sleep(_FRAMES_REAL_S)
        return int(await self._devtools.run(script("changes")))

    async def _run_ahead(self, budget_ms: int, *, real_s: float) -> None:
        """Run the page's clock ahead; if an open request stops it for ``real_s``, go on without that request."""
        for policy, limit_s in (("pauseIfNetworkFetchesPending", real_s), ("advance", _STUCK_REAL_S)):
            self._expired.clear()
            await self._devtools.send(
                "Emulation.setVirtualTimePolicy",
                {"policy": policy, "budget": budget_ms, "maxVirtualTimeTaskStarvationCount": 1000},
            )
            try:
                async with asyncio.timeout(max(0.0, min(limit_s, self._left_s()))):
                    await self._expired.wait()
                return
            except TimeoutError:
                continue

    async def _grow(self, height_px: int) -> int:
        """Set the viewport's height and let the page react; its height right after."""
        metrics = {"width": WIDTH_PX, "height": height_px, "deviceScaleFactor": 1, "mobile": False}
        await self._devtools.send("Emulation.setDeviceMetricsOverride", metrics)
        self._viewport_px = height_px
        after = int(await self._devtools.run(script("scrolled"), 0))
        await self._drawn()
        return after

    async def _drawn(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._devtools.run(_DRAWN)
        except TimeoutError:
            return  # a page that is never drawn is read as it is

    async def _measure(self) -> dict[str, Any]:
        seen: dict[str, Any] = await self._devtools.run(script("measure"))
        return seen

    def _left_s(self) -> float:
        flooded_at = self._flooded_at()
        until = self._deadline if flooded_at is None else min(self._deadline, flooded_at + _FLOODED_S)
        return until - time.monotonic()
