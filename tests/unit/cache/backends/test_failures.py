"""Outcomes of failed fetches."""

from __future__ import annotations

import pytest

from cache.backends.failures import failure_from_browser_error, failure_from_refusal, failure_from_target
from cache.capture import CaptureOutcome
from cache.egress.proxy_port import Refusal, RefusalReason


@pytest.mark.parametrize(
    ("host", "reason", "remedy"),
    [
        ("a.com", RefusalReason.ADDRESS, " (ASSAY_EGRESS_ALLOW=a.com:8080 would allow it)"),
        ("::1", RefusalReason.PORT, " (ASSAY_EGRESS_ALLOW=[::1]:8080 would allow it)"),
        ("a.com", RefusalReason.REQUEST, ""),
    ],
)
def test_setting_that_would_allow_an_address_is_named(host: str, reason: RefusalReason, remedy: str) -> None:
    assert failure_from_refusal(Refusal(host=host, port=8080, reason=reason, detail="why")).detail == f"why{remedy}"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("ERR_CERT_AUTHORITY_INVALID", CaptureOutcome.TLS_ERROR),
        ("ERR_TOO_MANY_REDIRECTS", CaptureOutcome.REDIRECT_LOOP),
        ("ERR_UNSAFE_PORT", CaptureOutcome.EGRESS_DENIED),
        ("ERR_CONNECTION_TIMED_OUT", CaptureOutcome.TIMEOUT),
        ("ERR_NAME_NOT_RESOLVED", CaptureOutcome.DNS_ERROR),
        ("ERR_CONNECTION_RESET", CaptureOutcome.CONNECT_ERROR),
    ],
)
def test_browser_error_codes_map_to_outcomes(code: str, outcome: CaptureOutcome) -> None:
    ending = failure_from_browser_error(f"Page.goto: net::{code} at https://a.com/\nCall log:\n")
    assert ending is not None
    assert (ending.outcome, ending.detail, ending.gone) == (outcome, code, False)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.com/x", "http://user:word@a.com/"])
def test_redirect_to_an_unfetchable_url_names_no_setting(url: str) -> None:
    ending = failure_from_target(url)
    assert ending is not None
    assert ending.outcome is CaptureOutcome.EGRESS_DENIED
    assert ending.detail.endswith("; no setting allows it")
    assert failure_from_target("http://10.0.0.1/") is None  # the egress proxy checks the address
