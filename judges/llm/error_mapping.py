"""Mapping of provider errors to ``judges.errors``: transient (retried), rejected, or filtered.

It uses HTTP status, error code and message, and depends on no SDK. Providers agree on little more than the status.

Servers put the message into ``error.message``, ``message``, ``detail`` (a string, or a list as FastAPI writes it), a
plain ``error``, a list around any of these, an HTML page, or next to a general message into ``metadata.raw``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

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
from judges.llm.models import is_missing_model_error
from judges.llm.retry import parse_retry_after

MAX_MESSAGE_CHARS = 300
TRANSIENT_STATUSES = frozenset({408, 409, 429})
"""Statuses that are retried, in addition to every 5xx."""

_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"}
)
_FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"}
)
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "request_too_large"})
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size|limit|overflow)|contextwindow|context the overflows"
    r"|maximum context|max_model_len"
    r"|too many (?:input |prompt )?tokens|(?:input|prompt|request|messages?|text|content)\b.{0,40}(?:is "
    r"|are )?too (?:long|large)"
    r"|too large for model|reduce the length|longer than the (?:maximum )?(?:model|context)|range of input length"
    r"|must have (?:less|fewer) than \d+ tokens|tokens?`? .{0,30}must be <=|max(?:imum)? (?:input|sequence"
    r"|prompt|model) length"
    r"|(?:tokens?|input|prompt|inputs?|length).{0,60}exceed|exceed.{0,60}(?:tokens|input length)"
    r"|maximum allowed length"
)
_OUTPUT_TOO_LONG = re.compile(
    r"completion tokens|max_tokens is too (?:large|high)|max_(?:completion|output)_tokens is too"
)
_ACCESS_CODES = frozenset(
    {"invalid_api_key", "authentication_error", "auth_error", "authenticationerror", "unauthorized", "unauthenticated",
     "api_key_invalid", "invalid_authentication", "token_expired", "invalid_token"}
)  # fmt: skip
_ACCESS = re.compile(
    r"authentication ?(?:error|fail|required)|(?:invalid|incorrect|wrong|missing|expired|revoked|unknown"
    r"|bad|no|malformed)"
    r"(?: or \w+)? (?:x-)?(?:proxy server )?(?:api[ _-]?key|credentials?|access token|(?:auth|bearer"
    r"|virtual key|proxy server) ?token"
    r"|token passed|authentication|authorization)|api[ _-]?key.{0,40}(?:not valid|invalid|incorrect"
    r"|expired|revoked|missing|required"
    r"|not found|disabled)|\bunauthori[sz]ed\b|not authenticated|no auth credentials|invalid proxy server token"
)
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
"""Error codes that concern only this request (status 400 or 500)."""

_TOO_LARGE = 413
_TOO_LONG_STATUSES = frozenset({400, 413, 422, 500})
_ACCESS_STATUSES = frozenset({400, 403, 500})
_WRONG_ADDRESS_STATUSES = frozenset({301, 302, 303, 307, 308, 405})
_SCOPES = dict.fromkeys({401, 402, *_WRONG_ADDRESS_STATUSES}, RejectionScope.ENDPOINT)
_MODEL_SCOPE = frozenset({400, 403, 404})
_CAUSES = {
    401: "the key is wrong or revoked",
    402: "the account must be paid for",
    403: "the key has no access to this",
    404: "there is no such model or endpoint",
    **dict.fromkeys(_WRONG_ADDRESS_STATUSES, "check the provider's address"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """HTTP error response. ``code`` is the provider's error code, ``param`` the part of the request it rejected.

    ``failed_generation`` is the model's text if the server rejected that text and not the request; else None.

    Long texts are cut, because the patterns for messages need more than linear time. Lone surrogates are replaced,
    because they cannot be printed.
    """

    provider: str
    status: int
    code: str = ""
    message: str = ""
    param: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    failed_generation: str | None = None

    def __post_init__(self) -> None:
        for name, max_chars in (("message", MAX_BODY_CHARS), ("code", MAX_CODE_CHARS), ("param", MAX_CODE_CHARS)):
            text = getattr(self, name)[:max_chars].encode("utf-8", "replace").decode()
            object.__setattr__(self, name, text)


def error_for_response(response: ErrorResponse, *, now: float) -> LLMError:
    """Return the error for a response. ``now`` is the wall clock in seconds since the epoch, for dates in headers.

    The header ``x-should-retry`` (true or false) decides whether the error is transient, unless the quota is used up.
    """
    code = response.code.lower()
    text = f"{response.provider}: {response.status} {response.message}"[:MAX_MESSAGE_CHARS]
    if is_quota_exhausted(response):
        return LLMQuotaExhausted(f"{text} ({_CAUSES[402]})", status=response.status, scope=RejectionScope.ENDPOINT)
    should_retry = {"true": True, "false": False}.get(response.headers.get("x-should-retry", "").strip().lower())
    if should_retry:
        return _unavailable(text, response, now=now)
    if response.status != 401 and is_missing_model_error(response.status, code, response.message):
        return LLMRejected(text, status=response.status, scope=RejectionScope.MODEL, no_such_model=True)
    if is_key_rejected(response):
        return LLMRejected(f"{text} ({_CAUSES[401]})", status=response.status, scope=RejectionScope.ENDPOINT)
    too_long = is_too_long(response)
    if response.status in TRANSIENT_STATUSES or (response.status >= 500 and not too_long):
        fault = _unavailable(text, response, now=now)
        fault.should_retry = should_retry is None
        return fault
    if is_filtered(response):
        return LLMOutputUnusable(UnusableKind.FILTERED, text)
    cause = _CAUSES.get(response.status)
    return LLMRejected(
        f"{text} ({cause})" if cause else text,
        status=response.status,
        scope=_scope(response, code),
        too_long=too_long,
    )


def images_rejected(response: ErrorResponse) -> LLMRejected:
    """Return the error for images that ``ASSAY_IMAGES=on`` sends to a model that takes none.

    Its scope is the request, because requests without images still succeed.
    """
    text = f"{response.provider}: {response.status} {response.message}"[:MAX_MESSAGE_CHARS]
    remedy = "ASSAY_IMAGES=on sends images to a model that takes none: set ASSAY_IMAGES=auto or off"
    return LLMRejected(f"{text} ({remedy})", status=response.status, scope=RejectionScope.REQUEST)


def is_quota_exhausted(response: ErrorResponse) -> bool:
    """Return whether the account has no credit left."""
    return response.code.lower() in _QUOTA_CODES


def is_filtered(response: ErrorResponse) -> bool:
    """Return whether a content filter rejected the prompt."""
    return response.status == 400 and response.code.lower() in _FILTER_CODES


def is_key_rejected(response: ErrorResponse) -> bool:
    """Return whether the key was rejected. Proxies may report this with a status other than 401."""
    names_key_problem = response.code.lower() in _ACCESS_CODES or _ACCESS.search(response.message.lower()) is not None
    return response.status == 401 or (response.status in _ACCESS_STATUSES and names_key_problem)


def is_unknown_model(response: ErrorResponse) -> bool:
    """Return whether the message names an unknown model. Status 404 alone is not enough, because servers also reject
    request formats with it.
    """
    return is_missing_model_error(400 if response.status == 404 else response.status, response.code, response.message)


def is_too_long(response: ErrorResponse) -> bool:
    """Return whether the request was rejected because it is too long."""
    message = response.message.lower()
    if response.status == _TOO_LARGE or response.code.lower() in _TOO_LONG_CODES:
        return response.status in _TOO_LONG_STATUSES
    return (
        response.status in _TOO_LONG_STATUSES
        and bool(_TOO_LONG.search(message))
        and not _OUTPUT_TOO_LONG.search(message)
    )


def _unavailable(text: str, response: ErrorResponse, *, now: float) -> LLMUnavailable:
    return LLMUnavailable(text, status=response.status, retry_after_s=_retry_after(response.headers, now=now))


def connection_error(
    provider: str, cause: BaseException, *, was_sent: bool, mask: Callable[[str], str] = str
) -> LLMUnavailable:
    """Return the error for a request without a response. ``mask`` hides the key, which the response may repeat.

    ``was_sent``: see ``LLMUnavailable``.
    """
    detail = " ".join(mask(f"{type(cause).__name__}: {cause}").split())
    error = LLMUnavailable(f"{provider}: no connection ({detail})"[:MAX_MESSAGE_CHARS])
    error.was_sent = was_sent
    return error


def timeout_error(provider: str) -> LLMTimeout:
    return LLMTimeout(f"{provider}: no reply in time")


def _scope(response: ErrorResponse, code: str) -> RejectionScope:
    about_this = code in _THIS_REQUEST_CODES or is_too_long(response) or "response_format" in response.message.lower()
    if response.status in (400, 500) and about_this:
        return RejectionScope.REQUEST
    if response.status in _MODEL_SCOPE:
        return RejectionScope.MODEL
    return _SCOPES.get(response.status, RejectionScope.REQUEST)


def _retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    milliseconds = parse_retry_after(headers.get("retry-after-ms"), now=now)
    if milliseconds is not None:
        return milliseconds / 1000
    return parse_retry_after(headers.get("retry-after"), now=now)


MAX_BODY_CHARS: Final = 4_000
MAX_CODE_CHARS: Final = 200
_MAX_JSON_CHARS: Final = 256 * 1024
_MAX_DEPTH: Final = 4
_MESSAGE_KEYS: Final = ("message", "msg", "detail", "details", "error", "errors", "error_description", "title")
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_FAILED_GENERATION: Final = frozenset({"json_validate_failed", "tool_use_failed", "output_parse_failed"})


class ErrorReturned(Exception):
    """The server responded with an error."""

    def __init__(self, response: ErrorResponse) -> None:
        super().__init__(response.message)
        self.response = response


def parse_error_body(text: str) -> Any:
    """Return the JSON value of the body of a response with an error status; for other texts, the text without tags.

    A body of more than 256 Ki characters is not read as JSON.
    """
    with suppress(ValueError, RecursionError):
        if len(text) <= _MAX_JSON_CHARS and (body := json.loads(text)) is not None:
            return body
    return " ".join(_TAGS.sub(" ", text[:MAX_BODY_CHARS]).split())


def read_error(
    body: Any, *, provider: str, status: int, headers: Mapping[str, str] | None = None, default_message: str
) -> ErrorResponse:
    """Return the error in a JSON value. ``default_message`` is its message if the value has none."""
    message = "; ".join(dict.fromkeys(_messages(body, _MAX_DEPTH)))[:MAX_BODY_CHARS]
    error = _innermost(body)
    code = str(error.get("code") or error.get("type") or error.get("status") or "")
    if code.isdigit():
        code = str(error.get("type") or error.get("status") or code)
    return ErrorResponse(
        provider=provider,
        status=status,
        code=code,
        message=message or default_message,
        param=str(error.get("param") or ""),
        headers=headers or {},
        failed_generation=str(error.get("failed_generation") or "") if code in _FAILED_GENERATION else None,
    )


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
