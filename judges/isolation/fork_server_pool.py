"""Where the processes of judge files come from: a warm fork server, started when the first one is wanted.

A fork server that died is replaced. Its environment and what it inherits are written down here, word by word: nothing
of ours that could be a secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from judges.errors import IsolationFailed
from judges.isolation.fork_server import MAX_ORDER_BYTES, READY
from judges.isolation.limits import ScriptLimits

_PROGRAM: Final = "judges.isolation.fork_server"
START_S: Final = 60.0
ENDING_S: Final = 10.0
"""How long it may take until a process and all it started are dead, and that is said."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a child ended. ``stopped`` is the limit that ended it, "told" when we did; ``tail`` the last it printed.

    ``cpu_s`` is what the file's process used, ``peak_bytes`` of memory in use.
    """

    stopped: str | None = None
    exit: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0
    printed: int = 0
    tail: str = ""


class Child:
    """One judge file's process: the sockets to talk to it, and ``life``, the one it hangs on."""

    def __init__(self, *, life: socket.socket, talk: socket.socket, ask: socket.socket) -> None:
        self.talk = talk
        self.ask = ask
        self._life = life
        self._ending: Ending | None = None

    def kill(self) -> None:
        """Have it and all it started killed, at once."""
        with suppress(OSError):
            self._life.shutdown(socket.SHUT_WR)

    async def ending(self, *, patience_s: float = 0.0) -> Ending:
        """How it ended; kills it if it does not end by itself within ``patience_s``.

        Raises:
            IsolationFailed: whoever watches it did not say so in time.
        """
        if self._ending is None:
            self._ending = await self._hear_the_end(patience_s)
        return self._ending

    async def _hear_the_end(self, patience_s: float) -> Ending:
        loop, said = asyncio.get_running_loop(), b""
        killing = loop.call_later(patience_s, self.kill)
        try:
            async with asyncio.timeout(patience_s + ENDING_S):
                while piece := await loop.sock_recv(self._life, 64 * 1024):
                    said += piece
        except (TimeoutError, OSError) as error:
            raise IsolationFailed("a judge file's process did not end") from error
        finally:
            killing.cancel()
        if not said:
            raise IsolationFailed("the fork server died, and a judge file's process with it")
        return Ending(**json.loads(said))

    async def be_gone(self) -> None:
        """Kill it if it still runs, wait until it has ended, and close what is open here."""
        try:
            await self.ending()
        except IsolationFailed as error:
            _log.warning("a judge file's process may be left", detail=str(error))
        finally:
            for each in (self._life, self.talk, self.ask):
                each.close()


class Nursery:
    """Makes children with ``modules`` imported already. Used from one event loop; ``aclose`` ends it."""

    def __init__(self, modules: Sequence[str], *, limits: ScriptLimits | None = None) -> None:
        self._modules = tuple(modules)
        self.limits = limits or ScriptLimits()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None
        self._clearing: set[asyncio.Task[None]] = set()

    @property
    def server_pid(self) -> int | None:
        """The fork server's process id, while there is one."""
        return None if self._server is None else self._server.pid

    def warm(self) -> None:
        """Begin to start the fork server, unless it runs; whoever wants a child waits for it."""
        if self._control is None and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._warm())

    async def ready(self) -> None:
        """Wait until the fork server runs.

        Raises:
            IsolationFailed: it does not start.
        """
        await self._started()

    @asynccontextmanager
    async def child(self, entry: str) -> AsyncIterator[Child]:
        """A child that calls ``entry`` (``module:function``), and a folder for its temporary files. Both end here.

        Raises:
            IsolationFailed: there is no way to start one.
        """
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="assay-judge-")
        child: Child | None = None
        try:
            child = await self._ordered({"entry": entry, "folder": folder, "limits": self.limits.plain()})
            yield child
        finally:
            # In a task of its own, so that it is done whole even when whoever waits here is called off again.
            ending = asyncio.create_task(_clear(child, folder))
            self._clearing.add(ending)
            ending.add_done_callback(self._clearing.discard)
            await asyncio.shield(ending)

    async def aclose(self) -> None:
        """End the fork server; children that still run are killed by whoever holds them."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        if self._clearing:
            await asyncio.wait(self._clearing)
        await self._end_server()

    async def _ordered(self, order: dict[str, Any]) -> Child:
        message = json.dumps(order).encode("ascii")
        if len(message) > MAX_ORDER_BYTES:
            raise IsolationFailed("the order for a judge file's process is too long")
        for _ in range(2):
            pairs = [socket.socketpair() for _ in range(3)]
            try:
                control = await self._started()
                socket.send_fds(control, [message], [theirs.fileno() for theirs, _ in pairs])
            except OSError as error:
                # It died since the last order; the next one is a new one.
                _log.warning("fork server lost", detail=str(error))
                for _, ours in pairs:
                    ours.close()
                await self._end_server()
                continue
            finally:
                for theirs, _ in pairs:
                    theirs.close()
            life, talk, ask = (ours for _, ours in pairs)
            for each in (life, talk, ask):
                each.setblocking(False)
            return Child(talk=talk, ask=ask, life=life)
        raise IsolationFailed("the fork server for judge files keeps dying")

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
            self._server = await asyncio.to_thread(_launch, theirs, self._modules)
            theirs.close()  # so that its end is seen as the end
            async with asyncio.timeout(START_S):
                said = await asyncio.get_running_loop().sock_recv(ours, len(READY))
        except (OSError, TimeoutError) as error:
            ours.close()
            await self._end_server()
            raise IsolationFailed(f"the fork server for judge files does not start: {error}") from error
        except asyncio.CancelledError:
            ours.close()
            await self._end_server()
            raise
        finally:
            theirs.close()
        if said != READY:
            ours.close()
            await self._end_server()
            raise IsolationFailed("the fork server for judge files ended at once: its error output says why")
        return ours

    async def _end_server(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            await asyncio.to_thread(server.wait)


async def _clear(child: Child | None, folder: str) -> None:
    if child is not None:
        await child.be_gone()
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _launch(control: socket.socket, modules: Sequence[str]) -> subprocess.Popen[bytes]:
    """The fork server as a fresh program: it inherits one socket and our error output, and nothing else."""
    command = [sys.executable, "-P", "-m", _PROGRAM, str(control.fileno()), *modules]
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        env=clean_environment(),
        cwd=Path.cwd(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def clean_environment() -> dict[str, str]:
    """The environment of a process that runs judge files: enough to find our packages, and no secret."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Libraries reserve address space by the thread, and a judge file's is bounded.
        "MALLOC_ARENA_MAX": "2",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
