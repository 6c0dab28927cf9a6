"""Outcomes of failed requests, from refusals of the egress proxy and error codes of the browser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cache.capture import CaptureOutcome
from cache.egress.proxy_port import Refusal, RefusalReason
from cache.urls import host_and_port, unfetchable_reason

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Redirect statuses. With other statuses, a ``Location`` header is not followed."""
MAX_HOP_CHARS = 16_384  # URLs of sign-on redirects are much longer than cited URLs
STORED_HEADERS = frozenset(
    {"content-type", "content-length", "content-language", "last-modified", "date", "etag", "server", "retry-after"}
    | {"x-robots-tag", "content-disposition", "age", "cache-control"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFailure:
    """Outcome of a failed request, with its reason. ``gone``: the source is known not to exist."""

    outcome: CaptureOutcome
    detail: str
    gone: bool = False


_OUTCOMES_BY_REASON = {
    RefusalReason.ADDRESS: CaptureOutcome.EGRESS_DENIED,
    RefusalReason.PORT: CaptureOutcome.EGRESS_DENIED,
    RefusalReason.REQUEST: CaptureOutcome.EGRESS_DENIED,
    RefusalReason.HOST_UNKNOWN: CaptureOutcome.DNS_ERROR,
    RefusalReason.LOOKUP_FAILED: CaptureOutcome.DNS_ERROR,
    RefusalReason.CONNECT_FAILED: CaptureOutcome.CONNECT_ERROR,
    RefusalReason.CONNECT_TIMEOUT: CaptureOutcome.TIMEOUT,
    RefusalReason.BYTES: CaptureOutcome.TOO_LARGE,
    RefusalReason.TIME: CaptureOutcome.TIMEOUT,
}
_OUTCOMES_BY_CODE: tuple[tuple[re.Pattern[str], CaptureOutcome], ...] = tuple(
    (re.compile(pattern), outcome)
    for pattern, outcome in (
        (r"ERR_NAME_", CaptureOutcome.DNS_ERROR),
        (r"ERR_(?:CERT_|SSL_|BAD_SSL|INSECURE_RESPONSE)", CaptureOutcome.TLS_ERROR),
        (r"ERR_TOO_MANY_REDIRECTS", CaptureOutcome.REDIRECT_LOOP),
        (r"ERR_(?:UNSAFE_|DISALLOWED_|UNKNOWN_URL_SCHEME|BLOCKED_)", CaptureOutcome.EGRESS_DENIED),
        (r"ERR_(?:CONNECTION_)?TIMED_OUT", CaptureOutcome.TIMEOUT),
        (r"ERR_(?:OUT_OF_MEMORY|INSUFFICIENT_RESOURCES)", CaptureOutcome.TOO_LARGE),
        (r"ERR_", CaptureOutcome.CONNECT_ERROR),
    )
)
_UNSAFE_PORT = "ERR_UNSAFE_PORT"
_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+)")


def failure_from_refusal(refusal: Refusal) -> CaptureFailure:
    """Convert a refusal of the egress proxy."""
    allowable = refusal.reason in (RefusalReason.ADDRESS, RefusalReason.PORT)
    return CaptureFailure(
        outcome=_OUTCOMES_BY_REASON[refusal.reason],
        detail=refusal.detail + (_remedy(refusal.host, refusal.port) if allowable else ""),
        gone=refusal.reason is RefusalReason.HOST_UNKNOWN,
    )


def failure_from_target(url: str) -> CaptureFailure | None:
    """Return the ending of a capture whose page leads to this URL. Return None if the URL can be fetched."""
    refusal = unfetchable_reason(url, max_chars=MAX_HOP_CHARS)
    if refusal is None:
        return None
    detail = f"redirect to {url[:100]}: {refusal}; no setting allows it"
    return CaptureFailure(outcome=CaptureOutcome.EGRESS_DENIED, detail=detail)


def _remedy(host: str, port: int) -> str:
    """Return the note that names the setting that allows a host and port."""
    url_host = f"[{host}]" if ":" in host else host
    return f" (ASSAY_EGRESS_ALLOW={url_host}:{port} would allow it)"


def failure_from_browser_error(message: str, url: str = "") -> CaptureFailure | None:
    """Convert a network error code of the browser (``net::ERR_…``). Return None if the message contains no code.

    Args:
        message: Error message of the browser.
        url: Requested URL. The browser refuses some ports unless ``ASSAY_EGRESS_ALLOW`` contains them; the detail
            then names the setting.
    """
    match = _CODE.search(message)
    if match is None:
        return None
    outcome = next(outcome for pattern, outcome in _OUTCOMES_BY_CODE if pattern.match(match[1]))
    detail = match[1]
    if detail == _UNSAFE_PORT and url:
        detail += _remedy(*host_and_port(url))
    return CaptureFailure(outcome=outcome, detail=detail)
