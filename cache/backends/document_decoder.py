"""Document decoding in a child process, with a deadline and an output limit."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from cache.backends import document_child
from cache.backends.plain_html import PlainPage, read_html
from cache.capture import CaptureOutcome
from cache.confinement.privileges import DEFAULT_UID, user_change_problem
from cache.errors import CacheError, DocumentRejected

MAX_OUTPUT_BYTES = 200 * 1024 * 1024
MAX_FRAME_BYTES = 32 * 1024 * 1024
_FINAL_TYPES = frozenset({"end", "rejected"})
DocumentKind: TypeAlias = Literal["pdf", "image", "html"]
SHORT_HTML_CHARS = 4_000
"""HTML up to this length is parsed in a thread: 30 MB and 0.1 s in the worst case."""
_DEADLINE_S = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message of the child: header, and a JPEG or nothing."""

    header: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOutput:
    """Frames from the child. ``stop_reason``: why it was stopped early, or empty if it finished."""

    frames: tuple[Frame, ...]
    stop_reason: str


async def decode_in_child(
    kind: DocumentKind, data: bytes, *, deadline_s: float = _DEADLINE_S, frame_s: float = 20.0
) -> ChildOutput:
    """Decode a document in a child process, which is gone when this returns or raises. ``frame_s``: limit per page."""
    async with _running_child(kind, data) as frames:
        return await _collect_frames(frames, deadline_s, frame_s)


async def read_html_safely(html: str, base_url: str) -> PlainPage:
    """Extract the content of untrusted HTML, in a child process unless it is short.

    The parser needs quadratic time and memory for some HTML: 25 kB of nested formatting takes 700 MB.

    Raises:
        DocumentRejected: the child exceeded its limits of CPU time (1 s, and 1 s per MiB of UTF-8) or memory (1 GiB).
    """
    if len(html) <= SHORT_HTML_CHARS:
        return await asyncio.to_thread(read_html, html, base_url)
    data = await asyncio.to_thread(lambda: json.dumps({"html": html, "base_url": base_url}).encode("ascii"))
    output = await decode_in_child("html", data, frame_s=_DEADLINE_S)
    page = next((frame.body for frame in output.frames if frame.header["type"] == "html"), None)
    if page is None:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, "the HTML takes too much time or memory to parse")
    return await asyncio.to_thread(_plain_page, page)


def _plain_page(body: bytes) -> PlainPage:
    fields = json.loads(body)
    links = tuple((str(label), str(target)) for label, target in fields.pop("links"))
    return PlainPage(**fields | {"headlines": tuple(fields["headlines"]), "links": links})


@asynccontextmanager
async def _running_child(kind: DocumentKind, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Start a child for a document and yield the stream of its output."""
    server = await asyncio.to_thread(shared_server)
    # Sockets instead of a pipe: uvloop closes a pipe's descriptor twice, and a thread may have reused it in between.
    parent_end, child_end = socket.socketpair()
    try:
        frames, closing = await asyncio.open_connection(sock=parent_end)
    except BaseException:  # cancellation too must close the sockets
        parent_end.close()
        child_end.close()
        raise
    # Shielded: without the process id of a child that is starting, nothing could kill it.
    starting = asyncio.ensure_future(asyncio.to_thread(_start_child, server, kind, data, child_end))
    try:
        try:
            await asyncio.shield(starting)
            yield frames
        finally:
            await asyncio.to_thread(server.kill, await starting)
            await _wait_for_end(frames)
    finally:
        closing.close()


def _start_child(server: DocumentServer, kind: DocumentKind, data: bytes, child_end: socket.socket) -> int:
    """Pass a document to a child. ``child_end`` is closed in this process, so that the stream ends with the child."""
    with child_end, tempfile.TemporaryFile() as document:
        document.write(data)
        document.seek(0)
        return server.fork(kind, document.fileno(), child_end.fileno())


async def _wait_for_end(frames: asyncio.StreamReader) -> None:
    """Wait for the end of the stream, which marks the end of the child."""
    while await frames.read(MAX_FRAME_BYTES):
        pass


async def _collect_frames(stream: asyncio.StreamReader, deadline_s: float, frame_s: float) -> ChildOutput:
    frames: list[Frame] = []
    total = 0
    try:
        async with asyncio.timeout(deadline_s):
            while total <= MAX_OUTPUT_BYTES:
                async with asyncio.timeout(frame_s):
                    frame = await _next_frame(stream)
                if frame is None:
                    return ChildOutput(frames=tuple(frames), stop_reason="a crash or its limits")
                frames.append(frame)
                total += len(frame.body)
                if frame.header["type"] in _FINAL_TYPES:
                    return ChildOutput(frames=tuple(frames), stop_reason="")
    except TimeoutError:
        return ChildOutput(frames=tuple(frames), stop_reason="the time limit")
    return ChildOutput(frames=tuple(frames), stop_reason="the output limit")


async def _next_frame(stream: asyncio.StreamReader) -> Frame | None:
    """Return the next frame, or None if the stream has ended."""
    try:
        head_bytes, body_bytes = struct.unpack(">II", await stream.readexactly(8))
        if head_bytes + body_bytes > MAX_FRAME_BYTES:
            return None
        header = json.loads(await stream.readexactly(head_bytes))
        return Frame(header=header, body=await stream.readexactly(body_bytes))
    except asyncio.IncompleteReadError:
        return None


_PROGRAM: Final = Path(document_child.__file__)
_START_S: Final = 60.0
_ANSWER_BYTES: Final = 64


class DocumentServer:
    """Fork server for document decoding. Blocking and thread-safe. A server that has exited is restarted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, kind: DocumentKind, document: int, frames: int) -> int:
        """Start a child that reads ``document`` and writes to ``frames`` (file descriptors). Return its process id.

        Raises:
            CacheError: the child cannot be started.
        """
        with self._lock:
            for _ in range(2):
                control = self._connect()
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

    def _connect(self) -> socket.socket:
        if self._control is None:
            parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with child_end:
                user = "" if user_change_problem(DEFAULT_UID) else str(DEFAULT_UID)
                self._process = subprocess.Popen(  # noqa: S603 - our own program, by its path
                    [sys.executable, "-I", str(_PROGRAM), str(_PROGRAM.parents[2]), user],
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


class _SharedServer:
    """One server per process: a forked process must not use the socket of its parent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner_pid = 0
        self._server = DocumentServer()

    def get(self) -> DocumentServer:
        with self._lock:
            if self._owner_pid != os.getpid():
                self._owner_pid, self._server = os.getpid(), DocumentServer()
                atexit.register(self._server.close)
            return self._server


_shared = _SharedServer()


def shared_server() -> DocumentServer:
    """Return the server of this process."""
    return _shared.get()
