from __future__ import annotations

import pytest

from judges.errors import (
    LLMError,
    LLMOutputUnusable,
    LLMQuotaExhausted,
    LLMRejected,
    LLMUnavailable,
    RejectionScope,
    UnusableKind,
)
from judges.llm.error_mapping import ErrorResponse, error_for_response


def fault(status: int, code: str = "", message: str = "", **headers: str) -> LLMError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_for_response(
        ErrorResponse(provider="openai", status=status, code=code, message=message, headers=named), now=1000.0
    )


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
def test_transient_statuses_are_unavailable_errors(status: int):
    error = fault(status)
    assert isinstance(error, LLMUnavailable)
    assert error.status == status


@pytest.mark.parametrize(
    ("status", "scope"),
    [
        (401, RejectionScope.ENDPOINT),
        (402, RejectionScope.ENDPOINT),
        (403, RejectionScope.MODEL),
        (404, RejectionScope.MODEL),
        (405, RejectionScope.ENDPOINT),
        (308, RejectionScope.ENDPOINT),
        (400, RejectionScope.MODEL),
        (413, RejectionScope.REQUEST),
        (422, RejectionScope.REQUEST),
        (418, RejectionScope.REQUEST),
    ],
)
def test_other_statuses_are_rejections_with_a_scope(status: int, scope: RejectionScope):
    error = fault(status, message="no")
    assert isinstance(error, LLMRejected)
    assert (error.status, error.scope) == (status, scope)


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (401, "", "the key is wrong or revoked"),
        (429, "insufficient_quota", "the account must be paid for"),
        (405, "", "check the provider's address"),
    ],
)
def test_rejection_of_every_request_names_the_remedy(status: int, code: str, remedy: str):
    assert remedy in str(fault(status, code, "no"))


def test_message_can_be_printed_although_it_has_a_lone_surrogate():
    assert str(fault(400, message="bad \ud800 x")).encode() == b"openai: 400 bad ? x"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("context_length_exceeded", "too long"),
        ("", "This model's maximum context length is 8192 tokens."),
        ("invalid_json_schema", "Invalid schema for response_format"),
        ("invalid_image_format", "no picture"),
    ],
)
def test_status_400_about_one_request_has_request_scope(code: str, message: str):
    error = fault(400, code, message)
    assert isinstance(error, LLMRejected)
    assert error.scope is RejectionScope.REQUEST


@pytest.mark.parametrize("status", [429, 403])
def test_exhausted_quota_is_not_retried(status: int):
    error = fault(status, "insufficient_quota", retry_after="1")
    assert isinstance(error, LLMQuotaExhausted)
    assert error.scope is RejectionScope.ENDPOINT


def test_filtered_prompt_is_an_unusable_reply():
    error = fault(400, "content_filter", "The prompt was filtered")
    assert isinstance(error, LLMOutputUnusable)
    assert error.kind is UnusableKind.FILTERED


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "Thu, 01 Jan 1970 00:16:45 GMT"}, 5.0),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "later"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_from_the_headers(headers: dict[str, str], seconds: float | None):
    error = fault(429, **headers)
    assert isinstance(error, LLMUnavailable)
    assert error.retry_after_s == seconds


def test_messages_are_short_and_name_the_setting():
    error = fault(401, message="x" * 10_000)
    assert len(str(error)) < 400
    assert "key" in str(error)


@pytest.mark.parametrize(
    ("status", "code", "header", "kind", "should_retry"),
    [
        (400, "", "true", LLMUnavailable, True),
        (404, "model_not_found", "true", LLMUnavailable, True),
        (503, "", "false", LLMUnavailable, False),
        (503, "", "sometimes", LLMUnavailable, True),
        (429, "insufficient_quota", "true", LLMQuotaExhausted, None),
        (400, "", "false", LLMRejected, None),
    ],
)
def test_x_should_retry_overrides_the_status(
    status: int, code: str, header: str, kind: type, should_retry: bool | None
):
    response = ErrorResponse(provider="openai", status=status, code=code, headers={"x-should-retry": header})
    error = error_for_response(response, now=0.0)
    assert type(error) is kind
    assert getattr(error, "should_retry", None) is should_retry
