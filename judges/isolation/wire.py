"""Frames between the service and a judge file's process: a length, then JSON.

JSON and nothing cleverer, because the other side runs code that may be wrong: whatever it sends is data.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, Final

from judges.errors import JudgeBug

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
LARGE_BYTES: Final = 256 * 1024
"""Frames from this size on are read and written in a thread, so that the event loop is not held."""
_LENGTH = struct.Struct(">I")

Frame = dict[str, Any]


class TooLong(ValueError):
    """A frame beyond the limit."""


def encode(frame: Frame) -> bytes:
    """The bytes of a frame. Raises TooLong, or ValueError for a number that JSON has not."""
    body = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise TooLong(f"a message of {len(body)} bytes is too long: at most {MAX_FRAME_BYTES} bytes")
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Frame:
    """The frame in a body.

    Raises:
        JudgeBug: it is none. Our own code does not write such frames, so the file has written to the socket itself.
    """
    try:
        frame = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise JudgeBug(f"the judge file's process sent what cannot be read: {error}") from error
    if not isinstance(frame, dict):
        raise JudgeBug(f"the judge file's process sent {type(frame).__name__}, not an object")
    return frame


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None at the end.

    Raises:
        JudgeBug: what came is no frame, or is too long.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise JudgeBug(f"the judge file's process sent a message of {length} bytes: at most {MAX_FRAME_BYTES}")
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return decode(body) if length < LARGE_BYTES else await asyncio.to_thread(decode, body)


def send_now(to: socket.socket, frame: Frame) -> None:
    """Write a frame to a socket that blocks."""
    to.sendall(encode(frame))


def receive_now(source: socket.socket) -> Frame:
    """The next frame from a socket that blocks.

    Raises:
        EOFError: there is none.
    """
    (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
    return decode(_exactly(source, length))


def _exactly(source: socket.socket, count: int) -> bytes:
    pieces: list[bytes] = []
    while count:
        piece = source.recv(min(count, 1024 * 1024))
        if not piece:
            raise EOFError("the service has closed the connection")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
