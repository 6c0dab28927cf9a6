"""Fork server for the document child: started on first use, stopped with this process."""

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
    """Fork server for document decoding. Blocking and thread-safe. A server that died is restarted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, kind: Literal["pdf", "image"], document: int, frames: int) -> int:
        """Start a child that reads ``document`` and writes to ``frames`` (file descriptors). Return its process id.

        Raises:
            CacheError: the child cannot be started.
        """
        with self._lock:
            for _ in range(2):
                control = self._connected()
                with suppress(OSError):
                    socket.send_fds(control, [kind.encode("ascii")], [document, frames])
                    if answer := control.recv(_ANSWER_BYTES):
                        return int(answer)
                self._stop()
        raise CacheError("cannot start the process that decodes documents; check free memory and the process limit")

    def kill(self, pid: int) -> None:
        """Kill a child if it is still running."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.send(f"kill {pid}".encode("ascii"))

    def close(self) -> None:
        """Stop the server and all its children."""
        with self._lock:
            self._stop()

    def _connected(self) -> socket.socket:
        if self._control is None:
            parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with child_end:
                self._process = subprocess.Popen(  # noqa: S603 - our own program, by its path
                    [sys.executable, "-I", str(_PROGRAM)],
                    stdin=child_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    start_new_session=True,
                )
            parent_end.settimeout(_START_S)
            self._control = parent_end
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


class _Shared:
    """One server per process: a forked process must not use the socket of its parent."""

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
    """Return the server of this process."""
    return _shared.get()
