"""The warm process that forks a confined child for each document: started at first use, ended with its owner."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from cache.backends import document_child
from cache.errors import CacheError

_PROGRAM: Final = Path(document_child.__file__)
_START_S: Final = 60.0
_ANSWER_BYTES: Final = 64


class DocumentServer:
    """Blocking, and safe to use from several threads. A server that died is started again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, kind: Literal["pdf", "image"], document: int, frames: int) -> int:
        """Start a child that reads ``document`` and writes ``frames`` (file descriptors); returns its process id.

        Raises:
            CacheError: no child can be started.
        """
        with self._lock:
            for _ in range(2):
                control = self._connected()
                with suppress(OSError):
                    socket.send_fds(control, [kind.encode("ascii")], [document, frames])
                    if answer := control.recv(_ANSWER_BYTES):
                        return int(answer)
                self._end()
        raise CacheError("the process that decodes documents cannot be started; out of memory or processes?")

    def kill(self, pid: int) -> None:
        """End a child, or do nothing when it has ended."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.send(f"kill {pid}".encode("ascii"))

    def close(self) -> None:
        """End the server and all its children."""
        with self._lock:
            self._end()

    def _connected(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own program, by its path
                    [sys.executable, "-I", str(_PROGRAM)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    start_new_session=True,
                )
            ours.settimeout(_START_S)
            self._control = ours
        return self._control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


class _Shared:
    """One server for each process that asks: a forked process must not talk over its parent's socket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._server = DocumentServer()

    def get(self) -> DocumentServer:
        with self._lock:
            if self._owner != os.getpid():
                self._owner, self._server = os.getpid(), DocumentServer()
                atexit.register(self._server.close)
            return self._server


_shared = _Shared()


def shared_server() -> DocumentServer:
    """The server of this process."""
    return _shared.get()
