"""The provider's words in the body of an error, whatever server wrote it. Pure.

Servers put them into ``error.message``, ``message``, ``detail`` (a text, or a list of FastAPI's), a plain ``error``, a
list around all of it, an HTML page, or beside a general message into ``metadata.raw``.
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
_SAID: Final = ("message", "msg", "detail", "details", "error", "errors", "error_description", "title")
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_FAILED_GENERATION: Final = frozenset({"json_validate_failed", "tool_use_failed", "output_parse_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What an error says. ``code`` is the provider's own, ``param`` the part of the request that was refused.

    ``failed_generation`` is what the model wrote, if the server refused that and not the request; else None.
    """

    message: str = ""
    code: str = ""
    param: str = ""
    failed_generation: str | None = None


def read_error_body(text: str) -> ErrorBody:
    """Read the body of a reply with an error status."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorBody(message=" ".join(_TAGS.sub(" ", text[:MAX_CHARS]).split()))
    return read_error(body)


def read_error(body: Any) -> ErrorBody:
    """Read an error that was parsed already."""
    message = "; ".join(dict.fromkeys(_words(body, _MAX_DEPTH)))[:MAX_CHARS]
    error = _innermost(body)
    code = str(error.get("code") or error.get("type") or error.get("status") or "")
    if code.isdigit():
        code = str(error.get("type") or error.get("status") or code)
    failed = str(error.get("failed_generation") or "") if code in _FAILED_GENERATION else None
    return ErrorBody(message=message, code=code, param=str(error.get("param") or ""), failed_generation=failed)


def _innermost(body: Any) -> Mapping[str, Any]:
    """The object that describes the error: ``error`` in the body, or the body itself."""
    if isinstance(body, list) and body:
        return _innermost(body[0])
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    if isinstance(inner, list) and inner:
        inner = inner[0]
    return inner if isinstance(inner, Mapping) else body


def _words(value: Any, depth: int) -> Iterator[str]:
    """Every text that says something, outermost first."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif depth > 0 and isinstance(value, Mapping):
        place = value.get("loc")
        before = f"{'.'.join(map(str, place))}: " if isinstance(place, Sequence) and not isinstance(place, str) else ""
        for name in _SAID:
            yield from (f"{before}{words}" for words in _words(value.get(name), depth - 1))
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping):
            yield from _raw(metadata.get("raw"), depth - 1)
    elif depth > 0 and isinstance(value, list):
        for each in value:
            yield from _words(each, depth - 1)


def _raw(value: Any, depth: int) -> Iterator[str]:
    """The words in what a provider behind a router said: an object, or one as JSON text."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    yield from _words(value, depth)
