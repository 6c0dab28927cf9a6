"""Browser launch: sandboxed, as an unprivileged user, and never outliving this process.

The launched program is a start script. If the service runs as root, the script gives the browser profile to an
unprivileged user. It drops all privileges and starts a watchdog. The watchdog kills the browser's process group when
the pipe that this process holds open is closed, however this process ends.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any

import psutil
import structlog

from cache.errors import BrowserUnavailable, SandboxUnavailable

_STOP_S = 1.0
_POLL_S = 0.01


class Driver:
    """Driver process: a child process that passes commands to the browser."""

    def __init__(self, manager: Any) -> None:
        """``manager``: return value of the library's ``async_playwright()``."""
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
)
SANDBOX_ERRORS = (
    "No usable sandbox",
    "Running as root without --no-sandbox",
    "Failed to move to new namespace",
    "namespace sandbox",
    "setuid sandbox",
)
_UNPRIVILEGED_USER = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A prepared launch: start script, environment, and the folder that contains both.

    ``watchdog_pipe``: writing end of the watchdog's pipe. Closing it kills the browser.
    """

    script: Path
    folder: Path
    environment: dict[str, str]
    watchdog_pipe: RawIOBase

    def browser_pid(self) -> int:
        """Return the process id of the browser. Call this only after the browser has responded."""
        return int((self.folder / "pid").read_text(encoding="ascii"))

    def kill(self) -> None:
        """Kill the browser and remove the folder."""
        self.watchdog_pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def prepare_launch(executable: Path, *, allow_unsandboxed: bool) -> Launch:
    """Write the start script for this machine and user.

    Raises:
        BrowserUnavailable: the executable is missing.
        SandboxUnavailable: the service runs as root and cannot change to another user, unless ``allow_unsandboxed``.
    """
    if not executable.is_file():
        raise BrowserUnavailable(f"browser not found: {executable}")
    drop = _privilege_drop(allow_unsandboxed=allow_unsandboxed)
    folder = Path(tempfile.mkdtemp(prefix="assay-browser-"))
    pipe = folder / "owner"
    os.mkfifo(pipe, 0o600)
    home = folder / "home"
    home.mkdir(mode=0o700)
    if drop.account is not None:
        folder.chmod(0o711)
        os.chown(home, drop.account.pw_uid, drop.account.pw_gid)
    script = folder / "browser"
    script.write_text(_script(executable, pipe, drop), encoding="utf-8")
    script.chmod(0o755)
    # Opened for reading and writing, so that neither this call nor the watchdog blocks.
    watchdog_pipe = pipe.open("r+b", buffering=0)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
    return Launch(script=script, folder=folder, environment=environment, watchdog_pipe=watchdog_pipe)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PrivilegeDrop:
    """How to drop privileges: the command prefix, and the user to change to, if any."""

    command: tuple[str, ...]
    account: pwd.struct_passwd | None


def _privilege_drop(*, allow_unsandboxed: bool) -> _PrivilegeDrop:
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    options = ("--no-new-privs", "--pdeathsig", "KILL")
    if os.geteuid() != 0:
        return _PrivilegeDrop(command=(setpriv, *options) if setpriv else (), account=None)
    try:
        account = pwd.getpwnam(_UNPRIVILEGED_USER)
    except KeyError:
        account = None
    if setpriv is None or account is None:
        if allow_unsandboxed:
            return _PrivilegeDrop(command=(), account=None)
        missing = "the program setpriv (package util-linux)" if setpriv is None else f"the user {_UNPRIVILEGED_USER}"
        raise SandboxUnavailable(
            f"the service runs as root, the browser needs an unprivileged user, and {missing} is missing: "
            "install it, run the service as another user, or allow an unsandboxed browser"
        )
    change_user = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
    return _PrivilegeDrop(
        command=(setpriv, *change_user, "--inh-caps=-all", "--bounding-set=-all", *options), account=account
    )


def _script(executable: Path, pipe: Path, drop: _PrivilegeDrop) -> str:
    """Return the start script. The watchdog closes descriptors 3 and 4, the browser's control pipe."""
    chown_profile = ":"
    if drop.account is not None:
        chown_profile = f'chown -R {drop.account.pw_uid}:{drop.account.pw_gid} "$profile"'
    # The watchdog runs in its own session, so that it survives killing the group and can remove the profile. It kills
    # the group only while its leader is still the browser with this profile, because process ids are reused.
    watchdog = 'read -r _ <"$0"; grep -qsF -e "$1" "/proc/$2/cmdline" && kill -KILL "-$2"; sleep 1; rm -rf "$1" "$3"'
    folder, owner = shlex.quote(str(pipe.parent)), shlex.quote(str(pipe))
    return f"""#!/bin/sh
echo "$$" >{folder}/pid
profile=
for argument in "$@"; do case "$argument" in --user-data-dir=*) profile=${{argument#*=}} ;; esac; done
{chown_profile}
setsid sh -c {shlex.quote(watchdog)} {owner} "$profile" "$$" {folder} </dev/null >/dev/null 2>&1 3<&- 4>&- &
exec {shlex.join([*drop.command, str(executable)])} "$@"
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
