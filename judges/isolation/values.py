"""Our values and errors as JSON, and back. What does not fit its type is an error of whoever sent it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cache.capture import Capture, CaptureOutcome, Observation
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
from cache.evidence import Evidence
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

_LLM: Final = {"usage": Usage}
_UNAVAILABLE: Final = _LLM | {"status": int | None, "retry_after_s": float | None, "tries": int}
_REJECTED: Final = _LLM | {"status": int | None, "scope": RejectionScope, "too_long": bool, "no_such_model": bool}
_BLOB: Final = {"sha256": str, "detail": str}
_ERRORS: Final[Mapping[type[Exception], Mapping[str, Any]]] = {
    # What crosses the border by name; the attributes of each, with their types.
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


def get_ready() -> None:
    """Make what reads and writes the usual values, which takes a while. Made before a fork, it is there after it."""
    for kind in (Usage, Claim, Verdict, Verdict | None, Capture, tuple[Capture, ...]):
        _adapter(kind)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def plain(value: Any, kind: Any) -> Any:
    """A value of type ``kind`` as JSON values."""
    return _adapter(kind).dump_python(value, mode="json")


def typed(value: Any, kind: Any) -> Any:
    """A value of type ``kind`` from JSON values.

    Raises:
        JudgeBug: it is none.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        raise JudgeBug(f"the judge file's process sent what is no {kind}: {error}") from error


def error_value(error: Exception) -> dict[str, Any]:
    """An error of ours as JSON values: as the nearest class that crosses the border."""
    kind = next((each for each in type(error).__mro__ if each in _ERRORS), None)
    if kind is None:
        raise TypeError(f"{type(error).__name__} does not cross the border") from error
    data = {name: plain(getattr(error, name), what) for name, what in _ERRORS[kind].items()}
    return {"kind": kind.__name__, "text": str(error), "data": data}


def error_from(value: Mapping[str, Any]) -> Exception:
    """The error again, with its message and attributes.

    Raises:
        JudgeBug: it is none.
    """
    kind = _BY_NAME.get(str(value.get("kind")))
    given = value.get("data")
    if kind is None or not isinstance(given, Mapping) or not given.keys() >= _ERRORS[kind].keys():
        raise JudgeBug(f"the judge file's process sent an unknown error: {str(value)[:200]}")
    made = kind.__new__(kind)
    Exception.__init__(made, str(value.get("text")))
    for name, what in _ERRORS[kind].items():
        setattr(made, name, typed(given[name], what))
    return made


def evidence_value(evidence: Evidence) -> dict[str, Any]:
    """A page with its text and pictures."""
    return {
        "capture": plain(evidence.capture, Capture),
        "text": evidence.text,
        "links": [list(link) for link in evidence.links],
        "screenshots": [as_text(shot) for shot in evidence.screenshots],
        "digests": list(evidence.digests),
        "hidden_text": evidence.hidden_text,
    }


def evidence_from(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an ``Evidence``.

    Raises:
        JudgeBug: they are not.
    """
    return {
        "capture": typed(value.get("capture"), Capture),
        "text": typed(value.get("text"), str),
        "links": typed(value.get("links"), tuple[tuple[str, str], ...]),
        "screenshots": tuple(as_bytes(shot) for shot in typed(value.get("screenshots"), tuple[str, ...])),
        "digests": typed(value.get("digests"), tuple[str, ...]),
        "hidden_text": typed(value.get("hidden_text"), str),
    }


def observation_value(seen: Observation) -> dict[str, Any]:
    """What was seen at a URL, its bodies in base64."""
    value: dict[str, Any] = {}
    for name, kind in _fields_of_observation().items():
        each = getattr(seen, name)
        if kind == _ONE_BODY:
            value[name] = None if each is None else as_text(each)
        elif kind == _BODIES:
            value[name] = [as_text(body) for body in each]
        else:
            value[name] = plain(each, kind)
    return value


def observation_from(value: Mapping[str, Any]) -> Observation:
    """The same again."""
    made: dict[str, Any] = {}
    for name, kind in _fields_of_observation().items():
        each = value.get(name)
        if kind == _ONE_BODY:
            made[name] = None if each is None else as_bytes(each)
        elif kind == _BODIES:
            made[name] = tuple(as_bytes(body) for body in each or ())
        else:
            made[name] = typed(each, kind)
    return Observation(**made)


_ONE_BODY: Final = bytes | None
_BODIES: Final = tuple[bytes, ...]


@cache
def _fields_of_observation() -> dict[str, Any]:
    hints = get_type_hints(Observation)
    return {each.name: hints[each.name] for each in fields(Observation)}


def as_text(data: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(data).decode("ascii")


def as_bytes(text: str) -> bytes:
    """Bytes from base64.

    Raises:
        JudgeBug: it is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise JudgeBug("the judge file's process sent bytes that are not in base64") from error
