"""Message framing between the service and a judge file's process: a length prefix, then JSON.

JSON, because the child runs code that may be faulty: its messages must be data only.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, Final

from judges.errors import JudgeBug

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
MAX_CHILD_FRAME_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a message from a child: a result, or a call with the screenshots of a page that a script created."""
MAX_CHILD_VALUES: Final = 250_000
"""Maximum number of JSON values in a message from a child. Decoded, ``[{},{},...]`` needs 30 times its size."""
LARGE_BYTES: Final = 256 * 1024
"""Frames of at least this size are encoded and decoded in a thread, so that the event loop is not blocked."""
_LENGTH = struct.Struct(">I")

Frame = dict[str, Any]


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER: Final = json.JSONDecoder(parse_constant=_reject_constant)


class FrameTooLarge(ValueError):
    """Frame that exceeds its maximum size."""


def encode(frame: Frame, *, max_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Return the bytes of a frame.

    Raises:
        FrameTooLarge: it exceeds ``max_bytes``.
        ValueError: it contains NaN or an infinity.
    """
    body = _ENCODER.encode(frame).encode("ascii")
    if len(body) > max_bytes:
        raise FrameTooLarge(f"message too long: {len(body)} bytes (max {max_bytes})")
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Frame:
    """Return the frame in a message body.

    Raises:
        JudgeBug: the body is not a frame. Our own client never sends one, so the judge file wrote to the socket itself.
    """
    try:
        frame = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise JudgeBug(f"the task file's process sent an unreadable message: {error}") from error
    if not isinstance(frame, dict):
        raise JudgeBug(f"the task file's process sent {type(frame).__name__} instead of a JSON object")
    return frame


async def read_body(reader: asyncio.StreamReader, *, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
    """Return the body of the next frame, or None at end of file.

    Raises:
        JudgeBug: it is too long.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > max_bytes:
            raise JudgeBug(f"the task file's process sent a message of {length} bytes (max {max_bytes})")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame of the service, or None at end of file.

    Raises:
        JudgeBug: the data is not a frame, or too long.
    """
    body = await read_body(reader)
    if body is None:
        return None
    return decode(body) if len(body) < LARGE_BYTES else await asyncio.to_thread(decode, body)


def max_values(body: bytes) -> int:
    """Return an upper bound of the number of values and keys in a JSON text, without decoding it (1 ms per MiB)."""
    return 1 + sum(map(body.count, (b"{", b"[", b",", b":")))


def send_blocking(to: socket.socket, frame: Frame) -> None:
    """Write a frame of a child to a blocking socket."""
    to.sendall(encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES))


def receive_blocking(source: socket.socket) -> Frame:
    """Return the next frame from a blocking socket.

    Raises:
        EOFError: the connection is closed.
    """
    (length,) = _LENGTH.unpack(_receive_exactly(source, _LENGTH.size))
    return decode(_receive_exactly(source, length))


def _receive_exactly(source: socket.socket, count: int) -> bytes:
    pieces: list[bytes] = []
    while count:
        piece = source.recv(min(count, 1024 * 1024))
        if not piece:
            raise EOFError("the service has closed the connection")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
