from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from judges.errors import LLMRejected, LLMTimeout, LLMUnavailable, ModelNotConfigured, RejectionScope
from judges.llm.bedrock import MAX_OUTPUT_TOKENS, BedrockAdapter, message_body, open_bedrock, read_message
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI, image_part
from judges.llm.learned_formats import Images
from judges.llm.provider_adapter import Access, FinishReason
from judges.prompting.rendering import BinaryEvalResult

REQUEST = LLMRequest(
    model="claude",
    messages=(
        {"role": "system", "content": "rules"},
        {"role": "user", "content": [image_part(DataURI.of_jpeg(b"j")), {"type": "text", "text": "claim"}]},
    ),
    schema=BinaryEvalResult,
)


class StatusError(Exception):
    def __init__(self, status: int, body: object = None) -> None:
        super().__init__("said no")
        self.message, self.status_code, self.body = "said no", status, body
        self.response = SimpleNamespace(headers={"retry-after": "3"})


class ConnectionFailed(Exception):
    pass


class TimedOut(ConnectionFailed):
    pass


SDK = SimpleNamespace(APIStatusError=StatusError, APIConnectionError=ConnectionFailed, APITimeoutError=TimedOut)


def message(*blocks: object, stop: str = "end_turn") -> SimpleNamespace:
    usage = SimpleNamespace(input_tokens=5, output_tokens=2, cache_read_input_tokens=1)
    return SimpleNamespace(content=list(blocks), stop_reason=stop, model="claude-sonnet-4", usage=usage)


def text(words: str) -> SimpleNamespace:
    return SimpleNamespace(type="text", text=words)


def backend(reply: object) -> BedrockAdapter:
    async def create(**body: object) -> object:
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close() -> None:
        return None

    client = SimpleNamespace(messages=SimpleNamespace(create=create), close=close)
    return BedrockAdapter(client=client, sdk=SDK, region="eu-west-1")


def test_request_has_system_text_parts_and_a_forced_tool():
    body = message_body(REQUEST, {"temperature": 0.0})
    assert (body["system"], body["max_tokens"], body["temperature"]) == ("rules", MAX_OUTPUT_TOKENS, 0.0)
    (user,) = body["messages"]
    assert user["content"][0] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/jpeg", "data": "ag=="},
    }
    assert user["content"][1] == {"type": "text", "text": "claim"}
    assert body["tool_choice"] == {"type": "tool", "name": "reply"}
    assert body["tools"][0]["input_schema"]["required"] == ["reasoning", "result"]


def test_free_text_forces_no_tool():
    body = message_body(LLMRequest(model="m", messages=({"role": "user", "content": "hi"},)), {})
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert not {"tools", "tool_choice", "system"} & set(body)


def test_tool_input_is_the_reply():
    call = SimpleNamespace(type="tool_use", input={"reasoning": "x", "result": True})
    reply = read_message(message(text("Let me see."), call))
    assert (reply.text, reply.finish) == ('{"reasoning": "x", "result": true}', FinishReason.STOP)
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (6, 2, 1)


@pytest.mark.parametrize(
    ("stop", "finish"),
    [("max_tokens", FinishReason.LENGTH), ("refusal", FinishReason.REFUSAL), ("end_turn", FinishReason.STOP)],
)
def test_stop_reason_is_mapped_to_a_finish_reason(stop: str, finish: FinishReason):
    assert read_message(message(text("x"), stop=stop)).finish is finish


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (StatusError(529, {"error": {"type": "overloaded_error", "message": "busy"}}), LLMUnavailable),
        (StatusError(403), LLMRejected),
        (ConnectionFailed("refused"), LLMUnavailable),
        (TimedOut("late"), LLMTimeout),
    ],
)
async def test_sdk_errors_are_mapped_to_llm_errors(fault: Exception, error: type[Exception]):
    with pytest.raises(error) as caught:
        await backend(fault).send(REQUEST, {})
    assert "bedrock" in str(caught.value)


@pytest.mark.parametrize(("cause", "was_sent"), [(httpx.ReadError("cut"), True), (httpx.ConnectError("no"), False)])
async def test_only_a_sent_request_may_have_a_cost(cause: Exception, was_sent: bool):
    fault = ConnectionFailed("no connection")
    fault.__cause__ = cause
    with pytest.raises(LLMUnavailable) as caught:
        await backend(fault).send(REQUEST, {})
    assert caught.value.was_sent is was_sent


@pytest.mark.parametrize(
    "reply",
    [
        "<html>",
        None,
        SimpleNamespace(content=None),
        SimpleNamespace(content=[None]),
        json.JSONDecodeError("Expecting value", "<html>", 0),
    ],
)
async def test_invalid_reply_is_broken_and_raises_nothing(reply: object):
    raw = await backend(reply).send(REQUEST, {})
    assert raw.finish is FinishReason.BROKEN
    assert "check the provider's address" in raw.detail


def test_unreported_token_counts_are_unknown():
    unreported = message(text("hello"))
    unreported.usage = None
    reply = read_message(unreported)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("hello", None, None)


async def test_send_returns_the_raw_reply():
    one = backend(message(text("hello")))
    assert (await one.send(REQUEST, {})).text == "hello"
    await one.aclose()


def test_error_for_the_missing_sdk_names_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelNotConfigured, match="pip install"):
        open_bedrock(Access(aws_access_key="a", aws_secret_key="s"))


class RecordingClient:
    """Client that records its requests and optionally rejects images."""

    def __init__(self, *, takes_images: bool) -> None:
        self.takes_images = takes_images
        self.shown: list[bool] = []
        self.messages = SimpleNamespace(create=self.create)

    async def create(self, **body: Any) -> object:
        shown = any(part["type"] == "image" for each in body["messages"] for part in each["content"])
        self.shown.append(shown)
        if shown and not self.takes_images:
            error = {"type": "invalid_request_error", "message": "messages.0.content.0: image blocks are not supported"}
            raise StatusError(400, {"error": error})
        return message(text("ok"))


@pytest.mark.parametrize(
    ("images", "takes_images", "shown", "text_only"),
    [
        (Images.AUTO, True, [True, True], False),
        (Images.ON, True, [True, True], False),
        (Images.OFF, True, [False, False], True),
        (Images.AUTO, False, [True, False, False], True),
        (Images.OFF, False, [False, False], True),
    ],
)
async def test_setting_decides_whether_images_are_sent(
    images: Images, takes_images: bool, shown: list[bool], text_only: bool
):
    client = RecordingClient(takes_images=takes_images)
    backend = BedrockAdapter(client=client, sdk=SDK, region="eu-west-1", images=images)
    assert [(await backend.send(REQUEST, {})).text_only for _ in range(2)] == [text_only] * 2
    assert client.shown == shown


async def test_error_for_rejected_images_names_the_setting():
    backend = BedrockAdapter(client=RecordingClient(takes_images=False), sdk=SDK, region="eu-west-1", images=Images.ON)
    with pytest.raises(LLMRejected, match="ASSAY_IMAGES=on") as caught:
        await backend.send(REQUEST, {})
    assert caught.value.scope is RejectionScope.REQUEST
