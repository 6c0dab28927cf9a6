from __future__ import annotations

import json
from typing import Any

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
from judges.llm.error_mapping import ErrorResponse, error_for_response, parse_error_body, read_error


def fault(status: int, code: str = "", message: str = "", **headers: str) -> LLMError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_for_response(
        ErrorResponse(provider="openai", status=status, code=code, message=message, headers=named), now=1000.0
    )


@pytest.mark.parametrize("status", [408, 429, 502, 529])
def test_transient_statuses_are_unavailable_errors(status: int):
    error = fault(status)
    assert isinstance(error, LLMUnavailable)
    assert error.status == status


@pytest.mark.parametrize(
    ("status", "scope"),
    [
        (401, RejectionScope.ENDPOINT),
        (403, RejectionScope.MODEL),
        (404, RejectionScope.MODEL),
        (400, RejectionScope.MODEL),
        (413, RejectionScope.REQUEST),
        (422, RejectionScope.REQUEST),
    ],
)
def test_other_statuses_are_rejections_with_a_scope(status: int, scope: RejectionScope):
    error = fault(status, message="no")
    assert isinstance(error, LLMRejected)
    assert (error.status, error.scope) == (status, scope)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("context_length_exceeded", "too long"),
        ("invalid_json_schema", "Invalid schema for response_format"),
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
    ("status", "code", "header", "kind", "should_retry"),
    [
        (400, "", "true", LLMUnavailable, True),
        (503, "", "false", LLMUnavailable, False),
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


def read(text: str) -> ErrorResponse:
    return read_error(parse_error_body(text), provider="openai", status=400, default_message="")


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": {"message": "No.", "type": "t", "code": "c", "param": "p"}}, "No.", "c"),
        ({"object": "error", "message": "No.", "type": "BadRequestError", "code": 400}, "No.", "BadRequestError"),
        ({"error": "No.", "error_type": "template_error"}, "No.", ""),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra"}, {"loc": ["body", "stop"], "msg": "Extra"}]},
         "body.seed: Extra; body.stop: Extra", ""),
        ([{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}], "No.", "INVALID_ARGUMENT"),
        ({"error": {"message": "Provider returned error", "code": 400,
                    "metadata": {"raw": '{"error": {"message": "No system role"}}'}}},
         "Provider returned error; No system role", "400"),
        ([], "", ""),
    ],
)  # fmt: skip
def test_message_and_code_are_found_in_any_layout(body: Any, message: str, code: str):
    found = read(json.dumps(body))
    assert (found.message, found.code) == (message, code)


def test_html_page_is_read_without_its_tags():
    page = "<html><style>a{}</style><h1>413 Request\r\n Entity Too Large</h1></html>"
    assert read(page).message == "413 Request Entity Too Large"
