"""Messages between the service and a task file's process: a length prefix, then values and errors as JSON.

A received value that does not match its type raises. JSON, because the child runs code that may be faulty: its messages
must be data only.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from io import BufferedRWPair
from typing import Any, Final, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cache.capture import Capture, CaptureOutcome
from cache.errors import (
    BlobCorrupt,
    BlobMissing,
    BlobStoreFailed,
    BrowserUnavailable,
    CacheError,
    DocumentRejected,
    IndexFailed,
    NoEvidence,
    SandboxUnavailable,
)
from judges.errors import (
    ExtractionFailed,
    JudgeBug,
    JudgeError,
    JudgeNotLoadable,
    LLMBudgetExceeded,
    LLMCircuitOpen,
    LLMError,
    LLMOutputUnusable,
    LLMQuotaExhausted,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
    ModelNotConfigured,
    RejectionScope,
    ScriptStopped,
    UnusableKind,
)
from rubrics.verdict import Claim, Reason, Usage, Verdict

_Page = TypeVar("_Page")
_LLM: Final = {"usage": Usage}
_UNAVAILABLE: Final = _LLM | {"status": int | None, "retry_after_s": float | None}
_REJECTED: Final = _LLM | {"status": int | None, "scope": RejectionScope, "too_long": bool, "no_such_model": bool}
_BLOB: Final = {"sha256": str, "detail": str}
_ERRORS: Final[Mapping[type[Exception], Mapping[str, Any]]] = {
    # Errors that may be sent to the other process, with the types of their attributes.
    LLMTimeout: _UNAVAILABLE,
    LLMUnavailable: _UNAVAILABLE,
    LLMCircuitOpen: _REJECTED,
    LLMQuotaExhausted: _REJECTED,
    LLMRejected: _REJECTED,
    LLMOutputUnusable: _LLM | {"kind": UnusableKind},
    LLMBudgetExceeded: _LLM,
    LLMError: _LLM,
    ExtractionFailed: {"cause_reason": Reason | None, "usage": Usage},
    ModelNotConfigured: {},
    ScriptStopped: {"limit": str, "traceback": str},
    JudgeNotLoadable: {"traceback": str},
    JudgeBug: {"traceback": str},
    JudgeError: {},
    NoEvidence: {"url": str, "outcome": CaptureOutcome, "detail": str, "gone": bool, "capture": Capture | None},
    BlobMissing: _BLOB,
    BlobCorrupt: _BLOB,
    BlobStoreFailed: _BLOB,
    DocumentRejected: {"outcome": CaptureOutcome, "detail": str},
    IndexFailed: {},
    SandboxUnavailable: {},
    BrowserUnavailable: {},
    CacheError: {},
}
_BY_NAME: Final = {kind.__name__: kind for kind in _ERRORS}


def preload() -> None:
    """Build the type adapters of common values, which is slow. The fork server calls this before it forks."""
    texts, links = tuple[str, ...], tuple[tuple[str, str], ...]
    for kind in (Usage, Claim, Verdict, Capture, tuple[Capture, ...], str, bool, texts, links):
        _adapter(kind)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_json_value(value: Any, kind: Any) -> Any:
    """Convert a value of type ``kind`` to JSON values."""
    return _adapter(kind).dump_python(value, mode="json")


def from_json_value(value: Any, kind: Any) -> Any:
    """Convert JSON values to a value of type ``kind``.

    Raises:
        JudgeBug: they do not match the type.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise JudgeBug(f"the task file's process sent an invalid {kind}: {error}") from error


def error_to_json(error: Exception) -> dict[str, Any]:
    """Convert an error to JSON values, as the nearest base class that may be sent."""
    kind = next((each for each in type(error).__mro__ if each in _ERRORS), None)
    if kind is None:
        raise TypeError(f"{type(error).__name__} cannot be sent to the task file's process") from error
    data = {name: to_json_value(getattr(error, name), annotation) for name, annotation in _ERRORS[kind].items()}
    return {"kind": kind.__name__, "text": str(error), "data": data}


def error_from_json(value: Mapping[str, Any]) -> Exception:
    """Convert JSON values to an error with its message and attributes.

    Raises:
        JudgeBug: they do not describe a known error.
    """
    kind = _BY_NAME.get(str(value.get("kind")))
    data = value.get("data")
    if kind is None or not isinstance(data, Mapping) or not data.keys() >= _ERRORS[kind].keys():
        raise JudgeBug(f"the task file's process sent an unknown error: {str(value)[:200]}")
    error = kind.__new__(kind)
    Exception.__init__(error, str(value.get("text")))
    for name, annotation in _ERRORS[kind].items():
        setattr(error, name, from_json_value(data[name], annotation))
    return error


class Content(StrEnum):
    """Content that the task file's process requests with ``evidence``.

    Without any, the reply has only the capture and the digests.
    """

    TEXT = "text"
    PAGE = "page"
    """Text and screenshots."""
    BODY = "body"
    """One stored body, by its digest."""


def page_to_json(page: Any, kind: type) -> dict[str, Any]:
    """Convert a page, of a dataclass ``kind`` like ``Evidence``, to JSON values. Its bodies are converted to base64."""
    value: dict[str, Any] = {}
    for name, field_kind in _fields_of(kind).items():
        each = getattr(page, name)
        if field_kind == _ONE_BODY:
            value[name] = None if each is None else to_base64(each)
        elif field_kind == _BODIES:
            value[name] = [to_base64(body) for body in each]
        else:
            value[name] = each if field_kind is str else to_json_value(each, field_kind)
    return value


def page_from_json(value: Mapping[str, Any], kind: Callable[..., _Page]) -> _Page:
    """Convert JSON values to a page of a dataclass ``kind``.

    Raises:
        JudgeBug: a field has the wrong type.
    """
    fields: dict[str, Any] = {}
    for name, field_kind in _fields_of(kind).items():
        each = value.get(name)
        if field_kind == _ONE_BODY:
            fields[name] = None if each is None else from_base64(from_json_value(each, str))
        elif field_kind == _BODIES:
            fields[name] = tuple(map(from_base64, from_json_value(each, tuple[str, ...])))
        else:
            fields[name] = from_json_value(each, field_kind)
    return kind(**fields)


_ONE_BODY: Final = bytes | None
_BODIES: Final = tuple[bytes, ...]


@cache
def _fields_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def from_base64(text: str) -> bytes:
    """Decode base64.

    Raises:
        JudgeBug: the text is not base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise JudgeBug("the task file's process sent bytes that are not valid base64") from error


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
        JudgeBug: the body is not a frame. Our own client never sends one, so the task file wrote to the socket itself.
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


def send_blocking(to: BufferedRWPair, frame: Frame) -> None:
    """Write a frame of a child to the file of a blocking socket."""
    to.write(encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES))
    to.flush()


def receive_blocking(source: BufferedRWPair) -> Frame:
    """Return the next frame from the file of a blocking socket.

    Raises:
        EOFError: the connection is closed.
    """
    head = source.read(_LENGTH.size)
    if len(head) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        body = source.read(length)
        if len(body) == length:
            return decode(body)
    raise EOFError("the service has closed the connection")
