from __future__ import annotations

import json
from typing import Any

import pytest

from judges.llm.error_mapping import MAX_BODY_CHARS, ErrorBody, read_error_body


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": {"message": "No.", "type": "t", "code": "c", "param": "p"}}, "No.", "c"),
        ({"error": {"message": "No.", "type": "t", "code": 400}}, "No.", "t"),
        ({"object": "error", "message": "No.", "type": "BadRequestError", "code": 400}, "No.", "BadRequestError"),
        ({"error": "No.", "error_type": "template_error"}, "No.", ""),
        ({"error": "Bad", "message": "No."}, "No.; Bad", ""),
        ({"detail": "No."}, "No.", ""),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra"}, {"loc": ["body", "stop"], "msg": "Extra"}]},
         "body.seed: Extra; body.stop: Extra", ""),
        ([{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}], "No.", "INVALID_ARGUMENT"),
        ({"error": {"message": "Provider returned error", "code": 400,
                    "metadata": {"raw": '{"error": {"message": "No system role"}}'}}},
         "Provider returned error; No system role", "400"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "No."}}},
         "Provider returned error; No.", ""),
        ({"error": {"message": {"detail": "No."}}}, "No.", ""),
        ({"error": None, "message": None}, "", ""),
        ([], "", ""),
        (3, "", ""),
    ],
)  # fmt: skip
def test_message_and_code_are_found_in_any_layout(body: Any, message: str, code: str):
    found = read_error_body(json.dumps(body))
    assert (found.message, found.code) == (message, code)


def test_html_page_is_read_without_its_tags():
    page = "<html><style>a{}</style><h1>413 Request\r\n Entity Too Large</h1></html>"
    assert read_error_body(page) == ErrorBody(message="413 Request Entity Too Large")


def test_failed_generation_is_read_only_for_its_error_code():
    error = {"message": "Failed", "code": "json_validate_failed", "failed_generation": '{"a": 1}'}
    assert read_error_body(json.dumps({"error": error})).failed_generation == '{"a": 1}'
    assert read_error_body(json.dumps({"error": {**error, "code": "other"}})).failed_generation is None


@pytest.mark.parametrize("body", ["", "[" * 100_000, '{"error":' * 50 + "1" + "}" * 50, "x" * 100_000])
def test_any_body_is_accepted(body: str):
    assert len(read_error_body(body).message) <= MAX_BODY_CHARS
