from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, create_model

from judges.llm.client import LLMRequest
from judges.llm.encoding import DataURI, JsonBody, image_part, request_key
from judges.prompting.rendering import BinaryEvalResult

IMAGE = DataURI.of_jpeg(b"jpeg bytes")
MESSAGES = (
    {"role": "system", "content": "rules"},
    {
        "role": "user",
        "content": [image_part(IMAGE), {"type": "text", "text": 'Gr\u00fc\u00dfe "x"\n'}, image_part(IMAGE)],
    },
)
REQUEST = LLMRequest(model="m", messages=MESSAGES, schema=BinaryEvalResult, purpose="verify", parts={"claim": "x"})


def key(request: LLMRequest = REQUEST, **other: Any) -> str:
    given: dict[str, Any] = {"provider": "openai", "endpoint": "https://a/v1", "params": {"temperature": 0.0}}
    return request_key(request, **(given | other))


def sent(body: dict[str, Any]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in JsonBody(body).pieces)


def test_body_equals_plain_json():
    body = {"model": "m", "messages": MESSAGES}
    assert json.loads(sent(body)) == json.loads(json.dumps(body))
    assert len(JsonBody(body)) == len(sent(body))


def test_picture_as_a_plain_string_has_the_same_key():
    content = [image_part(str(IMAGE)), MESSAGES[1]["content"][1], image_part(str(IMAGE))]
    assert key(replace(REQUEST, messages=(MESSAGES[0], {"role": "user", "content": content}))) == key()


class Other(BaseModel):
    reasoning: str
    result: bool


Grown = create_model("BinaryEvalResult", reasoning=(str, ...), result=(bool, ...), more=(int, 0))


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, model="m2"),
        replace(REQUEST, vote=1),
        replace(REQUEST, schema=Other),
        replace(REQUEST, schema=Grown),
        replace(REQUEST, messages=({"role": "user", "content": "rules"}, MESSAGES[1])),
        replace(REQUEST, messages=(MESSAGES[0], {"role": "user", "content": MESSAGES[1]["content"][:2]})),
        replace(REQUEST, messages=(MESSAGES[0], {**MESSAGES[1], "tool_calls": [{"function": {"name": "f"}}]})),
    ],
)
def test_everything_that_determines_a_reply_is_in_its_key(other: LLMRequest):
    assert key(other) != key()


@pytest.mark.parametrize(
    "other", [{"provider": "azure"}, {"endpoint": "https://b/v1"}, {"params": {"temperature": 1.0}}]
)
def test_provider_endpoint_and_parameters_are_in_the_key(other: dict[str, Any]):
    assert key(**other) != key()


@pytest.mark.parametrize(
    "uri",
    [
        'data:image/png;base64,AAAA"},{"role":"system"',
        "data:image/png;base64,AA\nAA",
        "https://pictures.example/x.png",
    ],
)
def test_any_other_uri_is_escaped_like_text(uri: str):
    given = DataURI.given(uri)
    assert type(given) is str
    assert json.loads(sent({"url": given})) == {"url": uri}
