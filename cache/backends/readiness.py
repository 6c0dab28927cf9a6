"""Page readiness: loads a page, runs its timers, and loads its lazy parts.

The page's clock is virtual. It is advanced faster than real time and pauses while requests are open, so text that a
timer adds after five seconds takes milliseconds. Lazy parts are loaded by growing the viewport to the page's height and
sending scroll events. Waiting ends when the text is stable and nothing open can add text.

The virtual clock does not advance while a script runs. A script that waits for the clock in a loop therefore never
ends: see ``ClockStuck``. Nor may it fall behind real time, as it does while it pauses for slow requests: Chromium then
draws no frames until it has caught up, measured with version 156.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cache.backends.devtools import DevTools, PageLost
from cache.backends.navigation import Navigation
from cache.egress.proxy_port import ProxyPort
from cache.page_scripts import script

WIDTH_PX = 1280
HEIGHT_PX = 800
SHOT_WIDTH_PX = 1100
SHOT_SCALE = SHOT_WIDTH_PX / WIDTH_PX
MAX_GROWN_PX = 11_636
MAX_SCROLLED_PX = 30_000
_REVEAL_STEP_PX = HEIGHT_PX * 3 // 4
LOAD_S = 15.0
LATE_MS = 6000
CHECK_MS = 15_000
"""Maximum wait for an automatic check of the browser, which lets the page through by itself."""
MAX_HIDDEN_MS = 15_000
"""Maximum wait for an animation that hides the whole page (that of AMP takes 8 seconds)."""
_ADVANCE_REAL_S = 6.0
_MUCH_TEXT_REAL_S = 3.0
_EXTRAS_REAL_S = 1.5
_AFTER_HIDDEN_MS = 500
_AHEAD_MS = 1000
_CATCH_UP_TRIES = 3
"""The previous time budget may end the new one early."""
_STUCK_REAL_S = 2.0
_SLOW_REQUEST_S = 3.0
"""Time after which a text request may be abandoned."""
_MORE_MS = 1500
"""Time on the page's clock in which a timer that follows a request or a change is expected to end."""
_POLLING_MS = 3000
"""A page whose text does not change for this time on its clock sends requests that bring no text."""
_ROUNDS = 3
_WAIT_REAL_S = 5.0
_WORKER_QUIET_ROUNDS = 4
_MIN_ROUNDS = 15
"""Rounds of polling while a page changes. They take longer on a busy machine, on which the page needs longer, too."""
_WAIT_MAX_REAL_S = 15.0
_QUIET_S = 1.0
_POLL_S = 0.25
_FRAMES_REAL_S = 0.08
_FRAMES_WATCHED = 5
_FRAMES_MAX_S = 3.0
_FLOODED_S = 4.0
_END_CHECKS = 25
_HANG_CHECK_S = 1.0
_REAL_CLOCK_VISIT_S = 25.0
"""Minimum time for a second visit with the real clock."""
_MAX_RESTARTS = 5
_LITTLE_TEXT_CHARS = 300
_MUCH_TEXT_CHARS = 2000
_GROWTH = 1.1

_WORKER_TYPES = ("worker", "shared_worker")
_ATTACH_WORKERS = {
    "autoAttach": True,
    "waitForDebuggerOnStart": False,
    "flatten": True,
    "filter": [{"type": kind} for kind in _WORKER_TYPES],
}
_IS_PARSED = '() => document.readyState !== "loading"'
_WAIT_UNTIL_LOADED = """() => document.readyState === "complete" ||
  new Promise((resolve) => addEventListener("load", () => resolve(true), { once: true }))"""
_WAIT_FOR_TIMER = "(ms) => new Promise((resolve) => setTimeout(() => resolve(true), ms))"
_READ_CLOCK = "() => Date.now()"
_CPU_METRIC = "ThreadTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Result of waiting for a page. ``incomplete_reason``: what is incomplete, or empty."""

    height_px: int
    viewport_px: int
    incomplete_reason: str = ""


async def set_viewport(devtools: DevTools, height_px: int) -> None:
    """Set the viewport height, and draw with the scale of screenshots, which the page does not notice.

    With another scale, screenshots would have to draw the page again.
    """
    metrics = {"width": WIDTH_PX, "height": height_px, "deviceScaleFactor": 1, "mobile": False}
    drawn = {"x": 0, "y": 0, "width": WIDTH_PX, "height": height_px, "scale": SHOT_SCALE}
    await devtools.send("Emulation.setDeviceMetricsOverride", {**metrics, "viewport": drawn})


class ClockStuck(Exception):
    """A script blocked the page while its clock was virtual. It may wait for that clock.

    Visit the URL again in a new page with the real clock.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class _HangLimit:
    """Time that a script may block the page, in real seconds and in CPU seconds. A script must exceed both.

    On a busy machine, real time passes without CPU time for the script.
    """

    real_s: float
    cpu_s: float


_VIRTUAL_CLOCK_LIMIT = _HangLimit(real_s=3.0, cpu_s=1.0)
_REAL_CLOCK_LIMIT = _HangLimit(real_s=10.0, cpu_s=2.0)


class PageLoader:
    """Waits until one page is ready. At ``deadline`` (monotonic time), the page is used as it is."""

    def __init__(
        self,
        devtools: DevTools,
        navigation: Navigation,
        *,
        deadline: float,
        framed_chars: Callable[[], Awaitable[int]],
        proxy_port: ProxyPort,
        real_clock: bool = False,
    ) -> None:
        """Create a loader for one page.

        Args:
            devtools: Session of the page.
            navigation: Navigation of the page.
            deadline: Monotonic time at which waiting ends.
            framed_chars: Returns the number of characters of text in the page's frames.
            proxy_port: Port of the page. If the page floods it with failing requests, the page's scripts are stopped.
            real_clock: Wait for the page's timers in real time instead of advancing its clock.
        """
        self._real_clock = real_clock
        self._is_clock_virtual = False
        self._hung = self._hung_with_virtual_clock = False
        self._scripts_stopped = asyncio.Event()
        """Set when the page's scripts and timers are stopped."""
        self._proxy_port = proxy_port
        self._scripts_run = True
        self._devtools = devtools
        self._navigation = navigation
        self._requests = navigation.requests
        self._framed_chars = framed_chars
        self._deadline = deadline
        self._viewport_px = HEIGHT_PX
        self._expired = asyncio.Event()
        self._ahead_until = 0.0
        """Monotonic time until which the page's clock is known to be ahead of real time."""
        self._page_ms = 0
        """Time by which the clock of this document was advanced."""
        self._text_events = 0
        self._text_event_ms = 0
        """Value of ``_page_ms`` at which the last request that may bring text was sent or ended."""
        self._worker_started_at = float("-inf")
        devtools.on("Emulation.virtualTimeBudgetExpired", lambda event: self._expired.set())
        devtools.on("Target.attachedToTarget", self._on_target)

    async def run(self) -> Readiness:
        """Wait until the page is ready. Error pages are not waited for.

        Raises:
            PageLost: The page is closed.
            ClockStuck: A script blocked the page while its clock was virtual. The page's scripts are stopped.
        """
        watches = {asyncio.create_task(self._watch_for_flood()), asyncio.create_task(self._watch_for_hang())}
        try:
            await self._devtools.send("Target.setAutoAttach", _ATTACH_WORKERS)
            ready = await self._wait_until_ready()
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.wait(watches)
        if self._hung_with_virtual_clock and self._deadline - time.monotonic() >= _REAL_CLOCK_VISIT_S:
            raise ClockStuck
        return ready

    async def _wait_until_ready(self) -> Readiness:
        parsed, seen = await self._load_document()
        self._navigation.block_navigation()
        height = int(seen["height"])
        has_nothing = self._navigation.loading_stopped.is_set() and not seen["chars"]  # may never be drawn
        if not (self._navigation.has_failed or self._navigation.body_taken.is_set() or has_nothing):
            height, seen = await self._load_late_parts(seen)
            await self._wait_for_promises(seen)
        if self._proxy_port.flooded.is_set() or self._hung:
            parsed = await self._finish_without_scripts() or parsed
        if self._hung:
            reason = "a script blocked the page and was stopped"
            return Readiness(height_px=height, viewport_px=self._viewport_px, incomplete_reason=reason)
        timeout_note = "the deadline expired" if self._deadline <= time.monotonic() else ""
        reason = timeout_note if parsed else "the document was still loading"
        return Readiness(height_px=height, viewport_px=self._viewport_px, incomplete_reason=reason)

    async def _watch_for_flood(self) -> None:
        """Stop the page's scripts some time after they began to repeat failing requests."""
        await self._proxy_port.flooded.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._remaining_s()):  # other requests may still bring text
                await self._requests.runaway.wait()
        with suppress(PageLost):  # the next command to the page raises it
            await self._stop_scripts()

    async def _watch_for_hang(self) -> None:
        """Stop the page's scripts if one of them blocks the page for too long."""
        with suppress(PageLost):  # the next command to the page raises it
            while not self._proxy_port.flooded.is_set():
                if await self._is_blocked():
                    self._hung, self._hung_with_virtual_clock = True, self._is_clock_virtual
                    await self._stop_scripts()
                    return
                await asyncio.sleep(_HANG_CHECK_S)

    async def _is_blocked(self) -> bool:
        """Return whether a script blocks the page for too long.

        Layout and loading of large content also block the page, but then it does not report its CPU time either.
        """
        probe = asyncio.ensure_future(self._devtools.send("Runtime.evaluate", {"expression": "0"}))
        limit = _VIRTUAL_CLOCK_LIMIT if self._is_clock_virtual else _REAL_CLOCK_LIMIT
        began, began_cpu_s = time.monotonic(), -1.0
        try:
            while not self._proxy_port.flooded.is_set():
                await asyncio.wait({probe}, timeout=_POLL_S)
                if probe.done():
                    probe.result()
                    return False
                cpu_s = await self._cpu_s(probe)
                began_cpu_s = cpu_s if began_cpu_s < 0 else began_cpu_s
                if time.monotonic() - began >= limit.real_s and cpu_s - began_cpu_s >= limit.cpu_s:
                    return True
            return False
        finally:
            probe.cancel()

    async def _cpu_s(self, probe: asyncio.Future[dict[str, Any]]) -> float:
        """Return the CPU seconds of the page's main thread, or -1 if ``probe`` completes first.

        This is one of the few commands that a page responds to while a script runs.
        """
        metrics = asyncio.ensure_future(self._devtools.send("Performance.getMetrics"))
        try:
            await asyncio.wait({metrics, probe}, return_when=asyncio.FIRST_COMPLETED)
            if not metrics.done():
                return -1.0
            return next(
                (float(metric["value"]) for metric in metrics.result()["metrics"] if metric["name"] == _CPU_METRIC),
                -1.0,
            )
        finally:
            metrics.cancel()

    async def _stop_scripts(self) -> None:
        """Stop the page's scripts permanently, even in an infinite loop.

        Scripts that wait for a promise cannot be stopped, but their requests get no response for a while.
        """
        if self._scripts_run:
            self._scripts_run = False
            disabling = self._devtools.send("Emulation.setScriptExecutionDisabled", {"value": True})
            stopping = asyncio.gather(disabling, self._devtools.send("Runtime.terminateExecution"))
            try:
                # The replies may be queued behind thousands of events of the loop.
                await asyncio.wait({stopping}, timeout=_FRAMES_REAL_S)
                await self._navigation.block_requests()
                await stopping
            finally:
                stopping.cancel()
                self._scripts_stopped.set()

    async def _finish_without_scripts(self) -> bool:
        """Stop the page's scripts, and wait for the document that they may block. Return whether it is complete."""
        await self._stop_scripts()
        parsed = False
        for _ in range(_END_CHECKS):
            parsed = bool(await self._devtools.run(_IS_PARSED))
            if parsed:
                break
            await asyncio.sleep(_FRAMES_REAL_S)  # poll, because no event listener runs without scripts
        return parsed

    async def _load_document(self) -> tuple[bool, dict[str, Any]]:
        """Wait for the document, and for documents that it navigates to.

        Return whether the last one is complete, and its measures.

        A page with enough text is held, because it is the cited page wherever it navigates next. A page with little
        text may be an interstitial and may navigate.
        """
        parsed = False
        for _ in range(_MAX_RESTARTS):
            self._navigation.navigated_again.clear()
            self._page_ms = self._text_event_ms = 0
            self._ahead_until = 0.0
            measured = await self._wait_for_state(script("measure_when_parsed"), LOAD_S)
            parsed = measured is not None
            seen = measured if isinstance(measured, dict) else await self._measure()
            chars = int(seen["chars"])
            if chars >= _LITTLE_TEXT_CHARS and not seen["checking"]:
                self._navigation.block_navigation()
            if not seen["loaded"]:
                limit_s = _MUCH_TEXT_REAL_S if chars >= _MUCH_TEXT_CHARS else LOAD_S
                await self._wait_for_state(_WAIT_UNTIL_LOADED, limit_s, extras=parsed)
                seen = await self._measure()
            if not self._navigation.navigated_again.is_set():
                if not seen["checking"] and seen["chars"] >= _LITTLE_TEXT_CHARS:
                    return parsed, seen
                if seen["checking"]:
                    await self._wait_for_check()
                else:
                    await self._advance_clock(LATE_MS, real_s=_ADVANCE_REAL_S)
            if not self._navigation.navigated_again.is_set() or self._navigation.failure is not None:
                break
            await self._next_document()
            if self._navigation.body_taken.is_set():
                break
        return parsed, await self._measure()

    async def _wait_for_check(self) -> None:
        """Wait while the page checks the browser, in real time only while its workers or requests are running."""
        until = time.monotonic() + min(CHECK_MS / 1000, self._remaining_s())
        await self._advance_clock(CHECK_MS, real_s=_ADVANCE_REAL_S)
        while time.monotonic() < until and not self._navigation.navigated_again.is_set():
            runs = time.monotonic() - self._worker_started_at < CHECK_MS / 1000 or self._requests.has_open_text_requests
            if not runs or not (await self._measure())["checking"]:
                return
            await self._advance_clock(int(_POLL_S * 1000), real_s=_POLL_S)
            await asyncio.sleep(_POLL_S)  # poll, because a worker that has finished is no event

    async def _wait_for_state(self, state: str, limit_s: float, *, extras: bool = False) -> Any:
        """Wait for a state of the document. Return the result of the script ``state``, or None if it was not reached.

        With ``extras``, the wait is short if only requests that bring no text (images, fonts) are open.
        """
        reached = asyncio.ensure_future(self._devtools.run(state))
        stopped = asyncio.ensure_future(self._navigation.loading_stopped.wait())
        began = time.monotonic()
        try:
            while (left_s := min(began + limit_s - time.monotonic(), self._remaining_s())) > 0:
                await asyncio.wait(
                    {reached, stopped}, timeout=min(_POLL_S, left_s), return_when=asyncio.FIRST_COMPLETED
                )
                only_extras = extras and not self._requests.has_open_text_requests
                if reached.done() or stopped.done() or (only_extras and time.monotonic() - began >= _EXTRAS_REAL_S):
                    break
            return reached.result() if reached.done() else None
        finally:
            stopped.cancel()
            reached.cancel()

    async def _next_document(self) -> None:
        """Wait for the document that the page navigates to."""
        try:
            async with asyncio.timeout(min(LOAD_S, self._remaining_s())):
                await self._navigation.document_ready.wait()
        except TimeoutError:
            return  # the current document remains the page

    async def _load_late_parts(self, seen: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Load late and lazy parts in rounds while the page grows. Return the final height, and the last measures."""
        height = int(seen["height"])
        if height > HEIGHT_PX and await self._devtools.run(script("hides_its_end")):
            await self._scroll_to_end(min(height, MAX_GROWN_PX))
        for round_number in range(_ROUNDS):
            stretches = await self._grow_to(height + int(seen["inner"]), height) and not seen["inner"]
            late_ms = LATE_MS - self._page_ms if round_number == 0 else 0
            hidden_ms = min(int(seen["hiddenMs"]) + _AFTER_HIDDEN_MS, MAX_HIDDEN_MS) if seen["hiddenMs"] else 0
            real_s = _MUCH_TEXT_REAL_S if seen["chars"] >= _MUCH_TEXT_CHARS else _ADVANCE_REAL_S
            await self._advance_clock(max(late_ms, hidden_ms, _MORE_MS), real_s=real_s)
            seen = await self._measure()
            if stretches:
                # The page is always as tall as its viewport, so capture it with the normal height.
                await self._grow(HEIGHT_PX)
                seen = await self._measure()
                return int(seen["height"]), seen
            if int(seen["height"]) <= _GROWTH * height or self._remaining_s() <= 0:
                break
            height = int(seen["height"])
        height = int(seen["height"])
        if height > MAX_GROWN_PX:
            seen = await self._scroll_through(MAX_GROWN_PX, height)
            height = int(seen["height"])
        viewport_px = self._viewport_px
        await self._grow_to(height, height)
        return height, seen if self._viewport_px == viewport_px else await self._measure()

    async def _scroll_to_end(self, height: int) -> None:
        """Scroll through the last fifth of the page with the normal viewport.

        Many pages show a part when it is, for example, 20 % of the viewport above its lower edge. In the grown
        viewport, their last parts never are.
        """
        for top in range(4 * height // 5, height, _REVEAL_STEP_PX):
            await self._scroll_and_draw(top)

    async def _grow_to(self, wanted_px: int, height_px: int) -> bool:
        """Grow the viewport, never shrink it. Return whether the page immediately grew with it."""
        wanted = min(wanted_px, MAX_GROWN_PX)
        return wanted > self._viewport_px and await self._grow(wanted) > _GROWTH * height_px

    async def _scroll_through(self, step: int, height: int) -> dict[str, Any]:
        """Scroll through the part of the page beyond the maximum viewport height. Return its measures at the end."""
        top = step
        while top < min(height, MAX_SCROLLED_PX) and self._remaining_s() > 0:
            height = await self._scroll_and_draw(top)
            await self._advance_clock(_MORE_MS, real_s=_STUCK_REAL_S)
            top += step
        await self._devtools.run(script("scroll_to"), 0)
        return await self._measure()

    async def _wait_for_promises(self, seen: dict[str, Any]) -> None:
        """Wait in real time for text that advancing the page's clock does not bring.

        Such text comes over a socket, from a worker, after a request that is still open, or frame by frame. If a page
        already shows thousands of characters, wait only while they change. Text from a worker is waited for in rounds
        in which frames are drawn, and not for a fixed time, because the worker may wait for a processor.
        """
        first, last = -1, -1
        changed_at = began = time.monotonic()
        changed_ms = self._page_ms
        until = began + min(_WAIT_MAX_REAL_S, self._remaining_s())
        rounds = quiet_rounds = 0
        while (now := time.monotonic()) < until:
            if now - began >= _WAIT_REAL_S and rounds >= _MIN_ROUNDS:
                return
            text_events = self._requests.text_events
            seen = await self._measure() if rounds else seen
            rounds += 1
            has_worker = self._worker_started_at > float("-inf")
            chars = int(seen["chars"])
            if seen["frames"] and chars < _MUCH_TEXT_CHARS:
                chars += await self._framed_chars()
            first = chars if first < 0 else first
            changed_at, changed_ms = (now, self._page_ms) if chars != last else (changed_at, changed_ms)
            is_quiet = last in (-1, chars) and (chars == first or now - changed_at >= _QUIET_S)
            is_enough = is_quiet and self._is_complete(chars, says_loading=bool(seen["waiting"]), waited_s=now - began)
            step_ms = _MORE_MS if is_enough or chars == last else int(_POLL_S * 1000)
            if is_enough or has_worker:
                is_same = not await self._count_changes()
                # Both looks at the page may fall between two requests of a chain.
                is_chain = self._requests.text_events != text_events
                have_timers_run = not is_chain and self._have_timers_run(since_ms=changed_ms)
                is_enough = is_enough and (chars >= _MUCH_TEXT_CHARS or have_timers_run)
                quiet_rounds = quiet_rounds + 1 if is_same and chars == last else 0
                has_worker = self._worker_started_at > float("-inf")
                if is_enough and is_same and (not has_worker or quiet_rounds >= _WORKER_QUIET_ROUNDS):
                    return
            last = chars
            await self._advance_clock(step_ms, real_s=_POLL_S)
            await asyncio.sleep(_POLL_S)  # poll, because text from a socket or worker has no event to wait for

    def _is_complete(self, chars: int, *, says_loading: bool, waited_s: float) -> bool:
        """Return whether a page with stable text is not expected to add more."""
        channel_opened_at = max(self._worker_started_at, self._requests.channel_opened_at)
        if chars >= _MUCH_TEXT_CHARS:
            return True
        if time.monotonic() - channel_opened_at < _WAIT_REAL_S or self._requests.has_open_text_requests:
            return False
        return waited_s >= _QUIET_S or (chars > 0 and not says_loading)

    def _have_timers_run(self, *, since_ms: int) -> bool:
        """Return whether timers that follow the last request had time to add text.

        A page may wait between two requests. If its text has not changed since ``since_ms``, it repeats requests that
        bring none.
        """
        if self._requests.has_open_text_requests:
            return False
        self._record_text_events()  # the page may have been between two requests when it was measured
        return self._page_ms - self._text_event_ms >= _MORE_MS or self._page_ms - since_ms >= _POLLING_MS

    def _record_text_events(self) -> None:
        if self._requests.text_events != self._text_events:
            self._text_events, self._text_event_ms = self._requests.text_events, self._page_ms

    def _on_target(self, event: dict[str, Any]) -> None:
        if event["targetInfo"]["type"] in _WORKER_TYPES:
            self._worker_started_at = time.monotonic()

    async def _count_changes(self) -> int:
        """Return how often text changes while a few frames are drawn, however long that takes on a busy machine."""
        await self.catch_up()
        try:
            async with asyncio.timeout(_FRAMES_MAX_S):
                return int(await self._devtools.run(script("count_changes"), _FRAMES_WATCHED))
        except TimeoutError:  # some pages are never drawn
            return int(await self._devtools.run(script("count_changes"), 0))

    async def _advance_clock(self, budget_ms: int, *, real_s: float) -> None:
        """Advance the page's clock.

        An open request pauses the clock for at most ``real_s``, and less if it cannot bring text. After that, the clock
        continues and slow requests are not waited for again.
        """
        self._record_text_events()
        self._page_ms += budget_ms
        if self._real_clock:
            await self._wait_for_timers(budget_ms)
        else:
            await self._advance_virtual_clock(budget_ms, real_s)
        self._record_text_events()

    async def _advance_virtual_clock(self, budget_ms: int, real_s: float) -> None:
        requests = self._requests
        if requests.has_open_requests or not requests.has_abandoned_requests:
            await self._set_clock("pauseIfNetworkFetchesPending", budget_ms)
            began = time.monotonic()
            while (left_s := min(began + real_s - time.monotonic(), self._remaining_s())) > 0:
                if await self._has_expired(min(_POLL_S, left_s)):
                    return
                if not requests.has_open_text_requests and time.monotonic() - began >= _EXTRAS_REAL_S:
                    break
            requests.abandon_open_requests(slow_s=_SLOW_REQUEST_S)
        await self._set_clock("advance", budget_ms)
        await self._has_expired(min(_STUCK_REAL_S, self._remaining_s()))

    async def _wait_for_timers(self, budget_ms: int) -> None:
        """Wait for a timer of the page. A running script delays it."""
        passed = asyncio.ensure_future(self._devtools.run(_WAIT_FOR_TIMER, budget_ms))
        ends = (self._navigation.navigated_again, self._scripts_stopped)
        waits = {passed, *(asyncio.ensure_future(end.wait()) for end in ends)}
        try:
            await asyncio.wait(waits, timeout=max(0.0, self._remaining_s()), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _set_clock(self, policy: str, budget_ms: int) -> None:
        self._expired.clear()
        await self._devtools.send(
            "Emulation.setVirtualTimePolicy",
            {"policy": policy, "budget": budget_ms, "maxVirtualTimeTaskStarvationCount": 1000},
        )
        self._is_clock_virtual = True

    async def catch_up(self) -> None:
        """Advance the page's clock to real time if it is behind, so that the page is drawn."""
        for _ in range(_CATCH_UP_TRIES if self._is_clock_virtual else 0):
            if time.monotonic() < self._ahead_until:
                return
            behind_ms = self._record_clock(float(await self._devtools.run(_READ_CLOCK)))
            if behind_ms <= 0:
                return
            await self._set_clock("advance", behind_ms + _AHEAD_MS)
            await self._has_expired(_STUCK_REAL_S)

    def _record_clock(self, now_ms: float) -> int:
        """Return how far the page's clock is behind real time, negative if it is ahead."""
        behind_ms = int(time.time() * 1000 - now_ms)
        self._ahead_until = time.monotonic() - behind_ms / 1000
        return behind_ms

    async def _has_expired(self, limit_s: float) -> bool:
        """Wait until the clock has advanced by the requested time. Return whether it has."""
        try:
            async with asyncio.timeout(max(0.0, limit_s)):
                await self._expired.wait()
        except TimeoutError:
            return False
        return True

    async def _grow(self, height_px: int) -> int:
        """Set the viewport height and let the page react. Return the page's height immediately after the change."""
        await set_viewport(self._devtools, height_px)
        self._viewport_px = height_px
        return await self._scroll_and_draw(0)

    async def _scroll_and_draw(self, top: int) -> int:
        """Scroll and wait for a frame. Return the page's height before the frame."""
        try:
            async with asyncio.timeout(_FRAMES_MAX_S):
                return int(await self._devtools.run(script("scroll_and_draw"), top))
        except TimeoutError:  # some pages are never drawn; read it as it is
            return int(await self._devtools.run(script("scroll_to"), top))

    async def _measure(self) -> dict[str, Any]:
        seen: dict[str, Any] = await self._devtools.run(script("measure_page"))
        self._record_clock(float(seen["now"]))
        return seen

    def _remaining_s(self) -> float:
        if not self._scripts_run:
            return 0.0
        flooded_at = self._proxy_port.flooded_at
        until = self._deadline if flooded_at is None else min(self._deadline, flooded_at + _FLOODED_S)
        return until - time.monotonic()
