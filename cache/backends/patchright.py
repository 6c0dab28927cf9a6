"""Browser capturer: started on demand, with a new context and proxy port per page, and restarted periodically.

Only this module and ``driver_connection`` import patchright. Implements the interfaces of ``devtools`` and
``visible_text``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from patchright._impl._errors import Error  # async_api, which exports it, takes 0.1 s to import

from cache.backends.browser_process import (
    FLAGS,
    SANDBOX_ERRORS,
    BrowserLease,
    BrowserPool,
    Driver,
    Launch,
    MemoryLimiter,
    prepare_launch,
)
from cache.backends.devtools import MainDocument, PageLost
from cache.backends.failures import failure_from_refusal
from cache.backends.readiness import HEIGHT_PX, MAX_GROWN_PX, WIDTH_PX, ClockStuck
from cache.backends.visit import READING_S, Visit
from cache.capture import CaptureOutcome, Observation
from cache.confinement.own_network import PORTS
from cache.confinement.privileges import DEFAULT_UID
from cache.egress.proxy import EgressProxy
from cache.errors import BrowserUnavailable, SandboxUnavailable
from cache.pacing import time_limit
from cache.page_scripts import script
from cache.page_text.visible_text import MAX_FRAMES, FrameLost, FrameView
from cache.pages import utc_now
from cache.urls import unfetchable_reason

if TYPE_CHECKING:
    from patchright.async_api import Browser, BrowserContext, CDPSession, Frame, Page, Playwright

_log = structlog.get_logger(__name__)

DEADLINE_S = 60.0
PAGES_PER_BROWSER = 100
_LAUNCH_MS = 30_000
_CLOSE_S = 3.0
_ATTEMPTS = 2
_MARGIN_S = 2.0
_LOST_MESSAGES = ("crashed", "has been closed", "Connection closed", "handler is closed")
_FRAME_ANSWER_S = 1.0
_COUNT_CHARS = "() => document.body ? document.body.innerText.trim().length : 0"
_DISCARD_PROXY = "http://127.0.0.1:9"  # default proxy: traffic outside a proxy port is discarded


@dataclass(frozen=True, slots=True)
class _RunningBrowser:
    """A running browser with its driver and launch."""

    driver: Driver
    browser: Browser
    launch: Launch
    memory_limiter: MemoryLimiter
    sandboxed: bool
    user_agent: str

    def is_alive(self) -> bool:
        return self.browser.is_connected()

    def kill(self) -> None:
        """Kill the browser. It has nothing to save, because its profile is temporary."""
        self.launch.kill()

    async def close(self) -> None:
        """Kill the browser and stop its driver."""
        self.kill()
        await self.driver.stop()


class BrowserCapturer:
    """Capturer that uses Chromium. ``semaphore`` limits concurrent captures."""

    def __init__(
        self,
        executable: Path,
        proxy: EgressProxy,
        *,
        semaphore: AbstractAsyncContextManager[object],
        deadline_s: float = DEADLINE_S,
        pages_per_browser: int = PAGES_PER_BROWSER,
        allow_unsandboxed: bool = False,
        max_height_px: int = MAX_GROWN_PX,
        contact: str = "",
        uid: int = DEFAULT_UID + 1,
    ) -> None:
        """Create a capturer; the browser starts with the first page.

        Args:
            executable: Headless shell or full Chromium.
            proxy: Egress proxy.
            semaphore: Acquired for each capture.
            deadline_s: Time limit of a capture.
            pages_per_browser: Number of pages after which the browser is replaced, at most 250.
            allow_unsandboxed: Run without a sandbox if none is available.
            max_height_px: Height of the part of a page that is shown in screenshots, in CSS pixels (1,280 px wide).
            contact: Added to the user agent.
            uid: User of the browser if this process is root.
        """
        self.executable = executable
        self._proxy = proxy
        self._semaphore = semaphore
        self._deadline_s = deadline_s
        self._allow_unsandboxed = allow_unsandboxed
        self._max_height_px = max_height_px
        self._contact = contact
        self._uid = uid
        self._pages_per_browser = min(pages_per_browser, len(PORTS))
        self._pool = BrowserPool(self._start, pages_per_browser=self._pages_per_browser)

    @property
    def sandboxed(self) -> bool | None:
        """Whether the current browser is sandboxed; None if none is running."""
        return None if self._pool.current is None else self._pool.current.sandboxed

    async def start(self) -> None:
        """Start the browser now instead of with the first page.

        Raises:
            BrowserUnavailable, SandboxUnavailable: it cannot start, or not with its sandbox.
        """
        await self._pool.ensure_started()

    async def capture(self, url: str) -> Observation:
        return await self._captured(url, None)

    async def render(self, url: str, html: bytes) -> Observation:
        """Render HTML as the page at ``url``, without a network. See ``cache.capture.Renderer``."""
        return await self._captured(url, html)

    async def _captured(self, url: str, content: bytes | None) -> Observation:
        async with self._semaphore:
            began = time.monotonic()
            limit_s, late = time_limit(self._deadline_s)
            initial = Observation(
                url=url,
                outcome=CaptureOutcome.TIMEOUT,
                captured_at=utc_now(),
                duration_s=0.0,
                backend=f"browser:{self.executable.name}",
                detail=late,
                versions={"patchright": _library_version()},
            )
            refusal = unfetchable_reason(url)
            if refusal is not None:
                return replace(initial, outcome=CaptureOutcome.UNSUPPORTED, detail=refusal)
            # A host that does not exist or is denied needs no browser, which takes a second of CPU time to start.
            denied = await self._proxy.refusal_of(url) if content is None else None
            if denied is not None:
                failure = failure_from_refusal(denied)
                seen = replace(
                    initial,
                    outcome=failure.outcome,
                    detail=failure.detail,
                    gone=failure.gone,
                    final_url=url,
                    chain=(url,),
                )
            else:
                seen = await self._visit_with_retry(initial, began + limit_s, content)
            return replace(seen, duration_s=time.monotonic() - began)

    async def aclose(self) -> None:
        """Close all browsers."""
        await self._pool.aclose()

    async def _visit_with_retry(self, initial: Observation, deadline: float, content: bytes | None) -> Observation:
        """Visit the URL. Retry once in a new page.

        The retry follows a lost browser or page, or a script that needs the real clock.
        """
        seen = initial
        real_clock = False
        for _ in range(_ATTEMPTS):
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await self._visit(initial, deadline - _MARGIN_S, content, real_clock=real_clock)
            except TimeoutError:
                return initial
            except PageLost as lost:
                seen = replace(initial, outcome=CaptureOutcome.CRASH, detail=str(lost)[:300])
            except ClockStuck:
                real_clock = True
                seen = replace(initial, detail="a script blocked the page")
            except _MemoryExceeded:
                return replace(initial, outcome=CaptureOutcome.TOO_LARGE, detail="the page took too much memory")
        return seen

    async def _visit(
        self, initial: Observation, deadline: float, content: bytes | None, *, real_clock: bool
    ) -> Observation:
        async with (
            self._pool.lease() as lease,
            lease.browser.memory_limiter.monitor(),
            self._proxy.proxy_port(bound=lease.browser.launch.next_port()) as proxy_port,
        ):
            kills = lease.browser.memory_limiter.kills
            sandbox = "on" if lease.browser.sandboxed else "off"
            versions = {**initial.versions, "browser": lease.browser.browser.version, "sandbox": sandbox}
            reading_s = min(READING_S, self._deadline_s / 4)
            try:
                proxy_url = proxy_port.url if content is None else _DISCARD_PROXY
                async with _open_page(lease, proxy_url) as page, page.until_crash():
                    seen = replace(initial, versions=versions)
                    visit = Visit(
                        page,
                        proxy_port,
                        seen,
                        deadline,
                        reading_s,
                        real_clock=real_clock,
                        max_height_px=self._max_height_px,
                        content=content,
                    )
                    return await visit.run()
            except PageLost as lost:
                if lease.browser.memory_limiter.kills > kills:
                    raise _MemoryExceeded from lost
                raise

    def _allowed_ports(self) -> list[str]:
        """Return the browser flag that allows otherwise refused ports. The egress proxy checks the hosts."""
        ports = ",".join(map(str, sorted(self._proxy.allowed_ports)))
        return [f"--explicitly-allowed-ports={ports}"] if ports else []

    async def _start(self) -> _RunningBrowser:
        try:
            return await self._launch(sandboxed=True)
        except SandboxUnavailable as refused:
            if not self._allow_unsandboxed:
                raise
            _log.warning("browser unsandboxed", why=str(refused))
            return await self._launch(sandboxed=False)

    async def _launch(self, *, sandboxed: bool) -> _RunningBrowser:
        needs_no_sandbox = self._allow_unsandboxed and not sandboxed
        launch = await asyncio.to_thread(
            prepare_launch,
            self.executable,
            allow_unsandboxed=needs_no_sandbox,
            uid=self._uid,
            pages=self._pages_per_browser,
        )
        from cache.backends.driver_connection import DriverManager

        driver = Driver(DriverManager())
        try:
            playwright: Playwright = await driver.start()
        except BaseException:  # cancellation too must end the launch
            launch.kill()
            raise
        try:
            browser = await playwright.chromium.launch(
                executable_path=launch.script,
                headless=True,
                chromium_sandbox=sandboxed,
                args=[*FLAGS, *self._allowed_ports()],
                env=dict(launch.environment),
                proxy={"server": _DISCARD_PROXY, "bypass": "<-loopback>"},
                timeout=_LAUNCH_MS,
                # Ctrl-C in a terminal also reaches the driver, which must stay alive until this process stops it.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            user_agent = await _user_agent(browser, self._contact)
            await asyncio.to_thread(launch.receive_ports)
        except BaseException as failed:
            launch.kill()
            await driver.stop()
            if isinstance(failed, Error):
                raise _launch_error(self.executable, failed) from failed
            raise
        _log.info(
            "browser started",
            executable=str(self.executable),
            version=browser.version,
            sandboxed=sandboxed,
            own_network=launch.receiver is not None,
        )
        return _RunningBrowser(driver, browser, launch, MemoryLimiter(launch.browser_pid()), sandboxed, user_agent)


@cache
def _library_version() -> str:
    """Return the version of patchright. Reading it takes 5 ms."""
    return version("patchright")


async def _user_agent(browser: Browser, contact: str) -> str:
    """Return the browser's user agent without "Headless", so that sites show the same page as to people.

    ``contact`` is appended for site operators.
    """
    session = await browser.new_browser_cdp_session()
    user_agent = str((await session.send("Browser.getVersion"))["userAgent"]).replace("HeadlessChrome", "Chrome")
    return f"{user_agent} (+{contact})" if contact else user_agent


class _MemoryExceeded(Exception):
    """The page was killed because of its memory use. Never raised outside this module."""


def _launch_error(executable: Path, failed: Error) -> BrowserUnavailable:
    message = failed.message
    if any(complaint in message for complaint in SANDBOX_ERRORS):
        return SandboxUnavailable(
            f"{executable} has no usable sandbox because unprivileged user namespaces are disabled: "
            "enable them, or allow an unsandboxed browser"
        )
    return BrowserUnavailable(f"{executable} does not start: {message[:500]}")


@asynccontextmanager
async def _open_page(lease: BrowserLease[_RunningBrowser], proxy_url: str) -> AsyncIterator[_OpenPage]:
    """Open a page in its own context. All its traffic goes through the proxy."""
    context: BrowserContext | None = None
    try:
        with _library_errors():
            context = await lease.browser.browser.new_context(
                proxy={"server": proxy_url, "bypass": "<-loopback>"},
                viewport={"width": WIDTH_PX, "height": HEIGHT_PX},
                locale="en-US",
                user_agent=lease.browser.user_agent,
                accept_downloads=False,
                service_workers="block",
                reduced_motion="reduce",
            )
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            tree = await session.send("Page.getFrameTree")
    except Error as lost:
        lease.retire()
        raise PageLost(lost.message) from lost
    try:
        yield _OpenPage(page, session, str(tree["frameTree"]["frame"]["id"]))
    finally:
        try:
            with _library_errors():
                async with asyncio.timeout(_CLOSE_S):
                    await context.close()
        except (TimeoutError, Error):
            lease.retire()  # it does not respond


@contextmanager
def _library_errors() -> Iterator[None]:
    """Convert all exceptions of the library to Error. After its driver has exited, it raises other exceptions."""
    try:
        yield
    except (Error, TimeoutError):
        raise
    except Exception as gone:
        raise Error(str(gone) or type(gone).__name__) from gone


class _FrameInPage:
    """Implements FrameView."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    async def run(self, script: str, argument: object) -> Any:
        try:
            with _library_errors():
                return await self._frame.evaluate(script, argument)
        except Error as lost:
            raise FrameLost(lost.message) from lost

    async def children(self) -> Sequence[tuple[str, FrameView]]:
        frames: list[tuple[str, FrameView]] = []
        for child in self._frame.child_frames:
            try:
                with _library_errors():
                    element = await child.frame_element()
                    place = await element.evaluate(script("element_path"))
            except Error:
                continue
            if not child.url.startswith("chrome-error:"):
                frames.append((str(place), _FrameInPage(child)))
        return frames


async def _chars_in(frame: Frame) -> int:
    """Return the number of characters of text in a frame; 0 if it does not respond."""
    try:
        async with asyncio.timeout(_FRAME_ANSWER_S):
            return int(await frame.evaluate(_COUNT_CHARS))
    except (TimeoutError, Error):
        return 0


class _OpenPage:
    """Implements ``visit.Page`` with a page and its DevTools session."""

    def __init__(self, page: Page, session: CDPSession, main_frame: str) -> None:
        self._page = page
        self._session = session
        self.main_frame = main_frame
        self.document = MainDocument(self, _FrameInPage(page.main_frame).children)

    @asynccontextmanager
    async def until_crash(self) -> AsyncIterator[None]:
        """Leave the context when the page crashes, because pending commands may never return. Raises PageLost then."""
        timeout = asyncio.timeout(None)

        def crashed(_: Page) -> None:
            timeout.reschedule(asyncio.get_running_loop().time())

        try:
            async with timeout:
                self._page.on("crash", crashed)
                try:
                    yield
                finally:
                    self._page.remove_listener("crash", crashed)
        except TimeoutError as cut:
            if not timeout.expired():
                raise
            raise PageLost("the page crashed") from cut

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            with _library_errors():
                answer: dict[str, Any] = await self._session.send(method, parameters)
        except Error as lost:
            raise PageLost(f"{method}: {lost.message}") from lost
        return answer

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None:
        self._session.on(event, listener)

    async def run(self, script: str, argument: object = None) -> Any:
        return await self.document.call(script, argument)

    async def open(self, url: str, *, timeout_s: float) -> str:
        try:
            with _library_errors():
                await self._page.goto(url, wait_until="commit", timeout=timeout_s * 1000)
        except Error as failed:
            if any(lost in failed.message for lost in _LOST_MESSAGES):
                raise PageLost(failed.message) from failed
            return failed.message
        return ""

    async def framed_chars(self) -> int:
        frames = self._page.main_frame.child_frames[:MAX_FRAMES]
        return sum(await asyncio.gather(*map(_chars_in, frames)))
