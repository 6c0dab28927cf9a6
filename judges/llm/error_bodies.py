"""Parser for error responses of OpenAI-compatible servers. Pure.

Servers put the message into ``error.message``, ``message``, ``detail`` (a string, or a list as FastAPI writes it), a
plain ``error``, a list around any of these, an HTML page, or next to a general message into ``metadata.raw``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

MAX_CHARS: Final = 4_000
_MAX_DEPTH: Final = 4
_MESSAGE_KEYS: Final = ("message", "msg", "detail", "details", "error", "errors", "error_description", "title")
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_FAILED_GENERATION: Final = frozenset({"json_validate_failed", "tool_use_failed", "output_parse_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """Parsed error. ``code`` is the provider's error code, ``param`` the part of the request that was rejected.

    ``failed_generation`` is the model's text if the server rejected that text and not the request; else None.
    """

    message: str = ""
    code: str = ""
    param: str = ""
    failed_generation: str | None = None


def read_error_body(text: str) -> ErrorBody:
    """Parse the body of a response with an error status."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorBody(message=" ".join(_TAGS.sub(" ", text[:MAX_CHARS]).split()))
    return read_error(body)


def read_error(body: Any) -> ErrorBody:
    """Read an error from a JSON value."""
    message = "; ".join(dict.fromkeys(_messages(body, _MAX_DEPTH)))[:MAX_CHARS]
    error = _innermost(body)
    code = str(error.get("code") or error.get("type") or error.get("status") or "")
    if code.isdigit():
        code = str(error.get("type") or error.get("status") or code)
    failed = str(error.get("failed_generation") or "") if code in _FAILED_GENERATION else None
    return ErrorBody(message=message, code=code, param=str(error.get("param") or ""), failed_generation=failed)


def _innermost(body: Any) -> Mapping[str, Any]:
    """Return the object that describes the error: ``error`` in the body, or the body itself."""
    if isinstance(body, list) and body:
        return _innermost(body[0])
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    if isinstance(inner, list) and inner:
        inner = inner[0]
    return inner if isinstance(inner, Mapping) else body


def _messages(value: Any, depth: int) -> Iterator[str]:
    """Yield all message texts, outermost first."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif depth > 0 and isinstance(value, Mapping):
        place = value.get("loc")
        before = f"{'.'.join(map(str, place))}: " if isinstance(place, Sequence) and not isinstance(place, str) else ""
        for name in _MESSAGE_KEYS:
            yield from (f"{before}{text}" for text in _messages(value.get(name), depth - 1))
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping):
            yield from _raw_messages(metadata.get("raw"), depth - 1)
    elif depth > 0 and isinstance(value, list):
        for each in value:
            yield from _messages(each, depth - 1)


def _raw_messages(value: Any, depth: int) -> Iterator[str]:
    """Yield the message texts of a provider behind a router, from an object or its JSON text."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    yield from _messages(value, depth)
