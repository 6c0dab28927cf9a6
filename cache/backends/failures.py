"""Outcomes of failed requests, from refusals of the egress proxy and error codes of the browser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cache.capture import CaptureOutcome
from cache.egress.guard import Refusal, RefusalReason

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Redirect statuses. With other statuses, a ``Location`` header is not followed."""
MAX_HOP_CHARS = 16_384  # URLs of sign-on redirects are much longer than cited URLs
KEPT_HEADERS = frozenset(
    {"content-type", "content-length", "content-language", "last-modified", "date", "etag", "server", "retry-after"}
    | {"x-robots-tag", "content-disposition", "age", "cache-control"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFailure:
    """Outcome of a failed request, with its reason. ``gone``: the source is known not to exist."""

    outcome: CaptureOutcome
    detail: str
    gone: bool = False


_BY_REASON = {
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
_BY_CODE: tuple[tuple[re.Pattern[str], CaptureOutcome], ...] = tuple(
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
_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+)")


def failure_from_refusal(refusal: Refusal) -> CaptureFailure:
    """Convert a refusal of the egress proxy."""
    allowable = refusal.reason in (RefusalReason.ADDRESS, RefusalReason.PORT)
    host = f"[{refusal.host}]" if ":" in refusal.host else refusal.host
    remedy = f" (ASSAY_EGRESS_ALLOW={host}:{refusal.port} would allow it)" if allowable else ""
    return CaptureFailure(
        outcome=_BY_REASON[refusal.reason],
        detail=refusal.detail + remedy,
        gone=refusal.reason is RefusalReason.HOST_UNKNOWN,
    )


def failure_from_browser_error(message: str) -> CaptureFailure | None:
    """Convert a network error code of the browser (``net::ERR_…``). Return None if the message contains no code."""
    found = _CODE.search(message)
    if found is None:
        return None
    outcome = next(outcome for pattern, outcome in _BY_CODE if pattern.match(found[1]))
    return CaptureFailure(outcome=outcome, detail=found[1])
