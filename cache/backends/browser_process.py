"""Browser launch: sandboxed, confined, as an unprivileged user, and never outliving this process.

The launched program is a start script. It moves the browser profile to a folder of the browser's user. It starts a
watchdog, and then the program that confines itself (``browser_start``). The watchdog kills the browser's process group
when the pipe that this process holds open is closed, however this process ends.

A pool has one current browser. It is replaced after a number of pages or when it stops responding.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import RawIOBase
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import psutil
import structlog

from cache.backends import browser_start
from cache.confinement.own_network import PORTS
from cache.confinement.privileges import DEFAULT_UID, are_open_to, user_change_problem
from cache.errors import BrowserUnavailable, SandboxUnavailable
from cache.scratch import new_folder, remove_folder

_STOP_S = 1.0
_POLL_S = 0.01
_RECEIVE_S = 5.0
_PROBE_S = 60.0
_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - the folder in it is created by mkdtemp


class Driver:
    """Driver process: a child process that passes commands to the browser."""

    def __init__(self, manager: Any) -> None:
        """``manager``: see ``driver_connection``."""
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
            await _wait_until_done(asyncio.ensure_future(self._abort_start(starting)))
            raise

    async def stop(self) -> None:
        """Ask the driver to exit; kill it if it does not do so in time."""
        stopping = asyncio.ensure_future(self._manager.__aexit__())
        try:
            await asyncio.wait({stopping}, timeout=_STOP_S)
        finally:
            if not stopping.done():
                _log.info("browser driver killed")
                self._kill()
                await _wait_until_done(stopping)

    async def _abort_start(self, starting: asyncio.Future[Any]) -> None:
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


FLAGS: tuple[str, ...] = (
    # Allow only traffic through the proxy: no UDP, no prefetching, no vendor services.
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-speech-api",
    "--disable-print-preview",
    "--deny-permission-prompts",
    "--block-new-web-contents",  # no popups: closing one while it opens can block its opener forever
    # Limit the resources of a page.
    "--js-flags=--max-old-space-size=768",
    "--disk-cache-size=1",
    "--media-cache-size=1",
    # Draw in large tiles: each tile takes shared memory and messages between processes.
    "--default-tile-width=1152",
    "--default-tile-height=512",
)
SANDBOX_ERRORS = (
    "No usable sandbox",
    "Running as root without --no-sandbox",
    "Failed to move to new namespace",
    "namespace sandbox",
    "setuid sandbox",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A prepared launch: start script, environment, and the folder that contains both.

    ``watchdog_pipe``: writing end of the watchdog's pipe. Closing it kills the browser.
    ``receiver``: receives the proxy ports of the browser's own network; None if it has no network of its own.
    """

    script: Path
    folder: Path
    environment: dict[str, str]
    watchdog_pipe: RawIOBase
    receiver: socket.socket | None
    _ports: list[socket.socket] = field(default_factory=list)

    def browser_pid(self) -> int:
        """Return the process id of the browser. Call this only after the browser has responded."""
        return int((self.folder / "pid").read_text(encoding="ascii"))

    def receive_ports(self) -> None:
        """Receive the proxy ports. Call this only after the browser has responded: it has sent them before."""
        if self.receiver is None:
            return
        connection, _ = self.receiver.accept()
        with connection:
            _, descriptors, _, _ = socket.recv_fds(connection, 16, len(PORTS))
        self._ports.extend(socket.socket(fileno=each) for each in descriptors)

    def next_port(self) -> socket.socket | None:
        """Return a bound socket for the proxy port of one page; None if the browser has no network of its own.

        Raises:
            BrowserUnavailable: all have been used.
        """
        if self.receiver is None:
            return None
        if not self._ports:
            raise BrowserUnavailable("the browser has opened more pages than it has proxy ports")
        return self._ports.pop()

    def kill(self) -> None:
        """Kill the browser and remove the folder."""
        self.watchdog_pipe.close()
        for each in (*self._ports, *([self.receiver] if self.receiver else ())):
            each.close()
        self._ports.clear()
        remove_folder(self.folder)


def prepare_launch(
    executable: Path, *, allow_unsandboxed: bool, uid: int = DEFAULT_UID + 1, pages: int = len(PORTS)
) -> Launch:
    """Write the start script for this machine and user.

    Args:
        executable: Browser.
        allow_unsandboxed: Whether it may run as root.
        uid: User of the browser if this process is root.
        pages: Number of pages that it will open: each has a proxy port. At most 250.

    Raises:
        BrowserUnavailable: the executable is missing.
        SandboxUnavailable: the service runs as root and cannot change to another user, unless ``allow_unsandboxed``.
    """
    if not executable.is_file():
        raise BrowserUnavailable(f"browser not found: {executable}")
    user = _user(uid, allow_unsandboxed=allow_unsandboxed)
    problem = own_network_problem(user)
    if problem:
        _log.warning("browser shares the network of the service", detail=problem)
    folder = _new_folder(user)
    pipe = folder / "owner"
    os.mkfifo(pipe, 0o600)
    home = folder / "home"
    home.mkdir(mode=0o700)
    if user is not None:
        folder.chmod(0o711)
        os.chown(home, user, user)
    receiver = None
    if not problem:
        receiver = socket.socket(socket.AF_UNIX)
        receiver.bind(str(folder / "ports"))
        receiver.listen(1)
        receiver.settimeout(_RECEIVE_S)
    script = folder / "browser"
    script.write_text(_script(executable, folder, user, ports=0 if problem else pages), encoding="utf-8")
    script.chmod(0o700)
    # Opened for reading and writing, so that neither this call nor the watchdog blocks.
    watchdog_pipe = pipe.open("r+b", buffering=0)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(home)}
    return Launch(script=script, folder=folder, environment=environment, watchdog_pipe=watchdog_pipe, receiver=receiver)


def _user(uid: int, *, allow_unsandboxed: bool) -> int | None:
    """Return the user to change to, if any."""
    problem = user_change_problem(uid)
    if problem and os.geteuid() == 0 and not allow_unsandboxed:
        raise SandboxUnavailable(
            f"the browser needs an unprivileged user, but {problem}: run the service as another user, or allow an "
            "unsandboxed browser"
        )
    return None if problem else uid


def _new_folder(user: int | None) -> Path:
    """Create a temporary folder that the user can reach, even if ``TMPDIR`` is closed to other users."""
    for parent in (tempfile.gettempdir(), *_TEMPORARY_FOLDERS):
        if user is None or are_open_to(user, [Path(parent)]):
            return new_folder("assay-browser-", parent=parent)
    raise BrowserUnavailable(
        f"user {user} of the browser can enter neither {tempfile.gettempdir()} nor {', '.join(_TEMPORARY_FOLDERS)}: "
        "set TMPDIR to a folder that all users can enter"
    )


@cache
def own_network_problem(user: int | None) -> str:
    """Return why a browser of this user cannot have a network namespace of its own; empty if it can. Takes 0.2 s."""
    with socket.socket(socket.AF_UNIX) as receiver, tempfile.TemporaryDirectory(prefix="assay-network-") as folder:
        receiver.bind(f"{folder}/ports")
        receiver.listen(1)
        command = start_command(user, 1, Path(folder, "ports"))
        command += [str(os.getpid()), folder, "/bin/sh", "-c", ":"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PROBE_S)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["the start program failed"])[-1]


def start_command(user: int | None, ports: int, receiver: Path) -> list[str]:
    """Return the command that confines itself and becomes the browser, without its last arguments.

    ``ports``: number of proxy ports in a network of its own, which are passed to the Unix socket ``receiver``; 0: none.
    """
    # Not PYTHONPATH, which the browser would inherit.
    packages = [path for path in sys.path if path]
    program = f"import sys; sys.path[:0] = {packages}; from {browser_start.__name__} import main; main(sys.argv[1:])"
    return [sys.executable, "-P", "-c", program, str(user or ""), str(ports), str(receiver)]


def _script(executable: Path, folder: Path, user: int | None, *, ports: int) -> str:
    """Return the start script. The watchdog closes descriptors 3 and 4, the browser's control pipe.

    The driver creates the profile folder where the browser's user may not be able to reach it, so the script replaces
    it. ``$profile`` is the one of the driver.
    """
    home = folder / "home"
    # The watchdog runs in its own session, so that it survives killing the group and can remove the profile. It kills
    # the group only while its leader is still the browser of this folder, because process ids are reused. It ends
    # soon, because it inherits pipes of the driver, whose end the event loop waits for.
    browser = 'grep -qsF -e "$3" "/proc/$2/cmdline"'
    ended = f"for _ in $(seq 20); do {browser} || break; sleep 0.1; done"
    watchdog = f'read -r _ <"$0"; {browser} && kill -KILL "-$2"; {ended}; rm -rf "$1" "$3"'
    quoted, owner = shlex.quote(str(folder)), shlex.quote(str(folder / "owner"))
    start = shlex.join(start_command(user, ports, folder / "ports"))
    return f"""#!/bin/sh
echo "$$" >{quoted}/pid
profile=
for argument in "$@"; do
  shift
  case "$argument" in
    --user-data-dir=*) profile=${{argument#*=}}; set -- "$@" --user-data-dir={shlex.quote(str(home / "profile"))} ;;
    *) set -- "$@" "$argument" ;;
  esac
done
setsid sh -c {shlex.quote(watchdog)} {owner} "$profile" "$$" {quoted} </dev/null >/dev/null 2>&1 3<&- 4>&- &
exec {start} "$PPID" {shlex.quote(str(home))} {shlex.quote(str(executable))} "$@"
"""


_log = structlog.get_logger(__name__)

MAX_PROCESS_BYTES = 1200 * 1024 * 1024
_INTERVAL_S = 0.5


class MemoryLimiter:
    """Monitors the processes of one browser while it has open pages. ``kills`` counts the killed processes."""

    def __init__(self, browser_pid: int, *, max_bytes: int = MAX_PROCESS_BYTES) -> None:
        self._browser_pid = browser_pid
        self._max_bytes = max_bytes
        self._callers = 0
        self._task: asyncio.Task[None] | None = None
        self.kills = 0

    @asynccontextmanager
    async def monitor(self) -> AsyncIterator[None]:
        """Monitor the processes as long as at least one caller is in this context."""
        self._callers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._monitor_processes(), name="memory limiter")
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers and self._task is not None:
                task, self._task = self._task, None
                task.cancel()
                await asyncio.wait([task])

    async def _monitor_processes(self) -> None:
        while True:
            self.kills += await asyncio.to_thread(self._kill_oversized)
            await asyncio.sleep(_INTERVAL_S)

    def _kill_oversized(self) -> int:
        try:
            processes = psutil.Process(self._browser_pid).children(recursive=True)
        except psutil.Error:
            return 0
        killed = 0
        for process in processes:
            try:
                size = process.memory_info().rss
                if size > self._max_bytes:
                    process.kill()
                    killed += 1
                    _log.warning("browser process killed", pid=process.pid, bytes=size)
            except psutil.Error:
                continue
        return killed


class PooledBrowser(Protocol):
    """Interface of a browser in the pool."""

    def is_alive(self) -> bool: ...

    def kill(self) -> None:
        """Kill the browser, so that pending commands fail. ``close`` must still be called."""

    async def close(self) -> None:
        """End the browser and all its processes, in any state."""


B = TypeVar("B", bound=PooledBrowser)


@dataclass(eq=False)
class BrowserLease(Generic[B]):
    """A browser in use. ``opened_pages`` counts all leases, ``active_pages`` the unreturned ones."""

    browser: B
    opened_pages: int = 0
    active_pages: int = 0
    retired: bool = False

    def retire(self) -> None:
        """Open no new pages in this browser. It is closed after its last page."""
        self.retired = True

    @property
    def is_unusable(self) -> bool:
        return self.retired or not self.browser.is_alive()


class BrowserPool(Generic[B]):
    """Starts browsers with ``start`` on demand. ``aclose`` closes all of them."""

    def __init__(self, start: Callable[[], Awaitable[B]], *, pages_per_browser: int) -> None:
        self._start = start
        self._pages_per_browser = pages_per_browser
        self._current: BrowserLease[B] | None = None
        self._leases: set[BrowserLease[B]] = set()
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def current(self) -> B | None:
        return None if self._current is None else self._current.browser

    async def ensure_started(self) -> B:
        """Return the browser for the next page. Start it if necessary. Raises the errors of ``start``."""
        async with self._lock:
            return (await self._usable_lease()).browser

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[BrowserLease[B]]:
        """Lease a browser for one page. Raises the errors of ``start``."""
        async with self._lock:
            lease = await self._usable_lease()
            lease.opened_pages += 1
            lease.active_pages += 1
            if lease.opened_pages >= self._pages_per_browser:
                lease.retire()
        try:
            yield lease
        finally:
            lease.active_pages -= 1
            if lease.is_unusable:
                async with self._lock:
                    await self._close_if_unused(lease)

    async def aclose(self) -> None:
        """Kill all browsers, also those in use. Later leases fail."""
        self._closed = True
        for lease in self._leases:
            lease.browser.kill()
        async with self._lock:
            for lease in list(self._leases):
                lease.active_pages = 0
                await self._close_if_unused(lease)

    async def _usable_lease(self) -> BrowserLease[B]:
        if self._closed:
            raise BrowserUnavailable("the browser pool is closed")
        current = self._current
        if current is None or current.is_unusable:
            if current is not None:
                await self._close_if_unused(current)
            current = self._current = BrowserLease(await self._start())
            self._leases.add(current)
        return current

    async def _close_if_unused(self, lease: BrowserLease[B]) -> None:
        """Close a browser that has no open pages."""
        if self._current is lease:
            self._current = None
        if lease.active_pages == 0 and lease in self._leases:
            self._leases.discard(lease)
            await lease.browser.close()
