"""What a provider's error means: worth another try, refused for good, or a reply that was filtered.

Providers agree on HTTP statuses and little else, so this reads values and knows no SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judges.errors import (
    LLMError,
    LLMOutputUnusable,
    LLMQuotaExhausted,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
    RejectionScope,
    UnusableKind,
)
from judges.llm.missing_models import says_no_such_model
from judges.llm.retry import parse_retry_after

MAX_MESSAGE_CHARS = 300
TRANSIENT_STATUSES = frozenset({408, 409, 429})
"""Retried, and so is every 5xx."""

_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"}
)
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "request_too_large"})
_TOO_LONG_WORDS = ("context length", "maximum context", "too many tokens", "prompt is too long")
_THIS_REQUEST_CODES = _TOO_LONG_CODES | frozenset(
    {
        "array_above_max_length",
        "invalid_json_schema",
        "invalid_image_format",
        "invalid_image_url",
        "invalid_base64_image",
        "image_too_large",
        "image_parse_error",
    }
)
"""Codes of a 400 that say something about this one request and nothing about the next."""

_THIS_REQUEST_WORDS = (*_TOO_LONG_WORDS, "response_format")
_TOO_LARGE = 413
_SCOPES = {401: RejectionScope.ENDPOINT, 402: RejectionScope.ENDPOINT}
_MODEL_SCOPE = frozenset({400, 403, 404})
_REMEDIES = {
    401: "the key is wrong or revoked",
    402: "the account must be paid for",
    403: "the key has no access to this",
    404: "there is no such model or endpoint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFault:
    """An HTTP reply that is no success. ``code`` is the provider's own, in whatever field it came."""

    provider: str
    status: int
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def status_fault(fault: StatusFault, *, now: float) -> LLMError:
    """The error for a status; ``now`` is the wall clock (seconds since the epoch) that dates in headers refer to."""
    code = fault.code.lower()
    text = f"{fault.provider}: {fault.status} {fault.message}"[:MAX_MESSAGE_CHARS]
    if code in _QUOTA_CODES:
        return LLMQuotaExhausted(text, status=fault.status, scope=RejectionScope.ENDPOINT)
    if fault.status in TRANSIENT_STATUSES or fault.status >= 500:
        return LLMUnavailable(text, status=fault.status, retry_after_s=_retry_after(fault.headers, now=now))
    if code in _FILTER_CODES:
        return LLMOutputUnusable(UnusableKind.FILTERED, text)
    if says_no_such_model(fault.status, code, fault.message):
        return LLMRejected(text, status=fault.status, scope=RejectionScope.MODEL, no_such_model=True)
    remedy = _REMEDIES.get(fault.status)
    return LLMRejected(
        f"{text} ({remedy})" if remedy else text,
        status=fault.status,
        scope=_scope(fault, code),
        too_long=_is_too_long(fault, code),
    )


def connection_fault(provider: str, cause: BaseException) -> LLMUnavailable:
    return LLMUnavailable(f"{provider}: no connection ({type(cause).__name__}: {cause})"[:MAX_MESSAGE_CHARS])


def timeout_fault(provider: str) -> LLMTimeout:
    return LLMTimeout(f"{provider}: no reply in time")


def _is_too_long(fault: StatusFault, code: str) -> bool:
    """Whether the same question would be taken if it were shorter."""
    says_so = code in _TOO_LONG_CODES or any(word in fault.message.lower() for word in _TOO_LONG_WORDS)
    return fault.status == _TOO_LARGE or (fault.status == 400 and says_so)


def _scope(fault: StatusFault, code: str) -> RejectionScope:
    about_this = code in _THIS_REQUEST_CODES or any(word in fault.message.lower() for word in _THIS_REQUEST_WORDS)
    if fault.status == 400 and about_this:
        return RejectionScope.REQUEST
    if fault.status in _MODEL_SCOPE:
        return RejectionScope.MODEL
    return _SCOPES.get(fault.status, RejectionScope.REQUEST)


def _retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    milliseconds = parse_retry_after(headers.get("retry-after-ms"), now=now)
    if milliseconds is not None:
        return milliseconds / 1000
    return parse_retry_after(headers.get("retry-after"), now=now)
