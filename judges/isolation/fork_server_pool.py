"""Fork server management: starts the server on first use, replaces it if it dies, and spawns children.

The server's environment and inherited descriptors are listed explicitly, so it gets no secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from cache.confinement.privileges import DEFAULT_UID, user_change_problem
from cache.scratch import new_folder, remove_folder
from judges.errors import IsolationFailed
from judges.isolation.fork_server import READY
from judges.isolation.process_limits import ScriptLimits

_PROGRAM: Final = "judges.isolation.fork_server"
START_TIMEOUT_S: Final = 60.0
REAP_TIMEOUT_S: Final = 10.0
"""Maximum time until a process and all its descendants are dead and the exit report has arrived."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """Exit report of a child.

    Attributes:
        stopped: Limit that was exceeded, or "told" if the service killed the child.
        cpu_s: CPU time of the task file's process.
        tail: End of the output.
    """

    stopped: str | None = None
    exit: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    tail: str = ""


class JudgeProcess:
    """Process of one task file: the two sockets of its RPC, and the ``life`` socket, which keeps it alive."""

    def __init__(self, *, life: socket.socket, main_socket: socket.socket, side_socket: socket.socket) -> None:
        self.main_socket = main_socket
        self.side_socket = side_socket
        self._life = life
        self._ending: ProcessExit | None = None

    def kill(self) -> None:
        """Kill the process and all its descendants immediately."""
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_WR)

    async def wait_for_exit(self, *, patience_s: float = 0.0) -> ProcessExit:
        """Return the exit report. Kill the process if it does not exit within ``patience_s``.

        Raises:
            IsolationFailed: no exit report arrived in time.
        """
        if self._ending is None:
            self._ending = await self._read_report(patience_s)
        return self._ending

    async def _read_report(self, patience_s: float) -> ProcessExit:
        loop, received = asyncio.get_running_loop(), b""
        kill_timer = loop.call_later(patience_s, self.kill)
        try:
            async with asyncio.timeout(patience_s + REAP_TIMEOUT_S):
                while piece := await loop.sock_recv(self._life, 64 * 1024):
                    received += piece
        except (TimeoutError, OSError) as error:
            raise IsolationFailed("a task file's process did not exit") from error
        finally:
            kill_timer.cancel()
        if not received:
            raise IsolationFailed("the fork server died, and a task file's process with it")
        return ProcessExit(**json.loads(received))

    async def terminate(self) -> None:
        """Kill the process if it still runs, wait until it has exited, and close the sockets."""
        try:
            await self.wait_for_exit()
        except IsolationFailed as error:
            _log.warning("a task file's process may still be running", detail=str(error))
        finally:
            for each in (self._life, self.main_socket, self.side_socket):
                each.close()


class ForkServerPool:
    """Spawner of children that have ``modules`` already imported.

    Use it from one event loop and close it with ``aclose``.
    """

    def __init__(
        self,
        modules: Sequence[str],
        *,
        limits: ScriptLimits | None = None,
        uid: int = DEFAULT_UID,
        terminal: bool = False,
    ) -> None:
        """Create a pool. ``uid`` is the user of the children if this process can change users.

        With ``terminal``, children can use the standard streams of this process, for a debugger.
        """
        self._modules = tuple(modules)
        self._uid = sandbox_user(uid)
        self.limits = limits or ScriptLimits()
        self.terminal = terminal
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._folder: Path | None = None
        """Folder of the fork server, which contains the folders of its children."""
        self._starting = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None
        self._cleanups: set[asyncio.Task[None]] = set()

    @property
    def server_pid(self) -> int | None:
        """Process id of the fork server, or None if it does not run."""
        return None if self._server is None else self._server.pid

    def start_in_background(self) -> None:
        """Start the fork server in the background unless it runs. ``child`` waits for it."""
        if self._control is None and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._warm())

    async def wait_until_running(self) -> None:
        """Wait until the fork server runs.

        Raises:
            IsolationFailed: it does not start.
        """
        await self._started()

    @asynccontextmanager
    async def spawn(
        self,
        entry: str,
        *,
        judge_files: Sequence[Path] = (),
        limits: ScriptLimits | None = None,
        terminal: bool = False,
    ) -> AsyncIterator[JudgeProcess]:
        """Spawn a child that calls ``entry`` (``module:function``), with a folder for its temporary files.

        It can read ``judge_files`` and the data files beside them. The child is killed and the folder deleted when the
        block ends. ``limits`` replaces those of the pool. ``terminal``: it keeps the terminal of a pool that has one.

        Raises:
            IsolationFailed: the child cannot be started.
        """
        job = {
            "entry": entry,
            "judge_files": [str(path) for path in judge_files],
            "limits": (limits or self.limits).to_json(),
            "terminal": terminal and self.terminal,
        }
        child = await self._spawn(job)
        try:
            yield child
        finally:
            # A separate task, so that cleaning up finishes even if this task is cancelled again.
            ending = asyncio.create_task(child.terminate())
            self._cleanups.add(ending)
            ending.add_done_callback(self._cleanups.discard)
            await asyncio.shield(ending)

    async def aclose(self) -> None:
        """Stop the fork server. Children that still run are killed by their callers."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        if self._cleanups:
            await asyncio.wait(self._cleanups)
        await self._end_server()

    async def _spawn(self, job: Mapping[str, Any]) -> JudgeProcess:
        for _ in range(2):
            control = await self._started()
            pairs = [socket.socketpair() for _ in range(3)]
            try:
                socket.send_fds(control, [json.dumps(job).encode("ascii")], [theirs.fileno() for theirs, _ in pairs])
            except OSError as error:
                # The server died since the last request; the retry starts a new one.
                _log.warning("fork server lost", detail=str(error))
                for _, ours in pairs:
                    ours.close()
                await self._end_server()
                continue
            finally:
                for theirs, _ in pairs:
                    theirs.close()
            life, main_socket, side_socket = (ours for _, ours in pairs)
            for each in (life, main_socket, side_socket):
                each.setblocking(False)
            return JudgeProcess(main_socket=main_socket, side_socket=side_socket, life=life)
        raise IsolationFailed("the fork server for task files died twice in a row")

    async def _warm(self) -> None:
        try:
            await self._started()
        except IsolationFailed as error:
            _log.warning("fork server not started", detail=str(error))

    async def _started(self) -> socket.socket:
        async with self._starting:
            if self._control is None:
                self._control = await self._start()
            return self._control

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            self._folder = await asyncio.to_thread(new_folder, "assay-judge-")
            self._server = await asyncio.to_thread(
                _launch, theirs, str(self._folder), self._uid, self._modules, self.terminal
            )
            theirs.close()  # otherwise its exit is not seen as end of file
            async with asyncio.timeout(START_TIMEOUT_S):
                received = await asyncio.get_running_loop().sock_recv(ours, len(READY))
        except (OSError, TimeoutError) as error:
            ours.close()
            await self._end_server()
            raise IsolationFailed(f"the fork server for task files does not start: {error}") from error
        except asyncio.CancelledError:
            ours.close()
            await self._end_server()
            raise
        finally:
            theirs.close()
        if received != READY:
            ours.close()
            await self._end_server()
            raise IsolationFailed("the fork server for task files exited during start-up; see its error output")
        return ours

    async def _end_server(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            await asyncio.to_thread(server.wait)
        folder, self._folder = self._folder, None
        if folder is not None:
            await asyncio.to_thread(remove_folder, folder)


def sandbox_user(uid: int) -> int | None:
    """Return ``uid`` if processes of task files can change to it, else None. If this process is root, log why not."""
    problem = user_change_problem(uid)
    if problem and os.geteuid() == 0:
        _log.warning("judge processes keep the user of the service", why=problem)
    return None if problem else uid


def _launch(
    control: socket.socket, folder: str, uid: int | None, modules: Sequence[str], terminal: bool
) -> subprocess.Popen[bytes]:
    """Start the fork server as a new program that inherits the control socket and stderr, and a ``terminal``."""
    stream = None if terminal else subprocess.DEVNULL
    user = "" if uid is None else str(uid)
    command = [sys.executable, "-P", "-m", _PROGRAM, str(control.fileno()), folder, user, *modules]
    return subprocess.Popen(  # noqa: S603 - fixed command
        command,
        env=clean_environment() | {"HOME": folder},
        cwd=Path.cwd(),
        stdin=stream,
        stdout=stream,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def clean_environment() -> dict[str, str]:
    """Return the environment of a process that runs task files: enough to find our packages, and no secrets."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Libraries reserve address space per thread, and a task file's address space is limited.
        "MALLOC_ARENA_MAX": "2",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
