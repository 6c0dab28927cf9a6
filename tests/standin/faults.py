"""Faults of a model server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One faulty reply. Without any field it is a normal reply.

    ``status`` sends an error. ``reset`` closes the connection before or in the middle of the reply, or after a line
    that is not HTTP. ``raw_body`` is the whole body of a 200, ``error_body`` that of an error. ``content`` replaces the
    text of the message or maps the valid text to an invalid one.
    """

    status: int | None = None
    message: str = "scripted fault"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float | None = None
    reset: Literal["before", "mid_body", "not_http"] | None = None
    raw_body: str | None = None
    content: str | Callable[[str], str] | None = None
    refusal: str | None = None
    finish_reason: str = "stop"
    param: str | None = None
    error_body: str | None = None


RATE_LIMITED = Fault(status=429, message="Rate limit reached", code="rate_limit_exceeded")
WRONG_KEY = Fault(status=401, message="Incorrect API key provided", code="invalid_api_key")
NO_ACCESS = Fault(status=403, message="You are not allowed to use this model", code="forbidden")
UNKNOWN_MODEL = Fault(status=404, message="The model does not exist", code="model_not_found")
BAD_REQUEST = Fault(status=400, message="Unsupported parameter", code="unsupported_parameter")
TOO_LONG = Fault(status=400, message="maximum context length is 8192 tokens", code="context_length_exceeded")
RESET = Fault(reset="before")
RESET_MID_BODY = Fault(reset="mid_body")
NOT_HTTP = Fault(reset="not_http")

TRUNCATED = Fault(finish_reason="length", content=lambda good: good[: len(good) // 2])
REFUSED = Fault(refusal="I cannot help with that.")
FILTERED = Fault(finish_reason="content_filter", content="")
EMPTY = Fault(content="")
MALFORMED = Fault(content="The claim is true, I think.")
CUT_JSON = Fault(content=lambda good: good[:-3])
TWO_OBJECTS = Fault(content=lambda good: good + good.replace("true", "false"))
OFF_SCHEMA = Fault(content='{"verdict": "supported"}')
WRONG_TYPES = Fault(content='{"reasoning": "x", "result": "yes", "quotes": []}')
NOT_A_NUMBER = Fault(content='{"reasoning": "x", "result": NaN, "quotes": []}')
LIST_NOT_OBJECT = Fault(content="[true]")
HTML_BODY = Fault(raw_body="<html><body>502</body></html>")
NOT_JSON_BODY = Fault(raw_body="{not json")
NO_CHOICES = Fault(raw_body='{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}')

UNUSABLE = {
    "truncated": TRUNCATED,
    "refused": REFUSED,
    "filtered": FILTERED,
    "empty": EMPTY,
    "malformed": MALFORMED,
    "cut_json": CUT_JSON,
    "two_objects": TWO_OBJECTS,
    "off_schema": OFF_SCHEMA,
    "wrong_types": WRONG_TYPES,
    "not_a_number": NOT_A_NUMBER,
    "list_not_object": LIST_NOT_OBJECT,
    "html_body": HTML_BODY,
    "not_json_body": NOT_JSON_BODY,
    "no_choices": NO_CHOICES,
}
"""Replies with status 200 that cannot be used."""
