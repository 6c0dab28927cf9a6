from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from judges.errors import LLMRejected, LLMTimeout, LLMUnavailable, ModelNotConfigured
from judges.llm.bedrock import MAX_OUTPUT_TOKENS, BedrockBackend, message_body, open_bedrock, read_message
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI, image_part
from judges.llm.wire import Finish
from judges.prompting.verdict_reply import BinaryEvalResult

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


def backend(reply: object) -> BedrockBackend:
    async def create(**body: object) -> object:
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close() -> None:
        return None

    client = SimpleNamespace(messages=SimpleNamespace(create=create), close=close)
    return BedrockBackend(client=client, sdk=SDK, region="eu-west-1")


def test_a_request_becomes_rules_parts_and_a_forced_tool():
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


def test_the_tools_input_is_the_reply():
    call = SimpleNamespace(type="tool_use", input={"reasoning": "x", "result": True})
    reply = read_message(message(text("Let me see."), call))
    assert (reply.text, reply.finish) == ('{"reasoning": "x", "result": true}', Finish.STOP)
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (6, 2, 1)


@pytest.mark.parametrize(
    ("stop", "finish"), [("max_tokens", Finish.LENGTH), ("refusal", Finish.REFUSAL), ("end_turn", Finish.STOP)]
)
def test_how_the_model_ended_is_told_in_one_vocabulary(stop: str, finish: Finish):
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
async def test_its_faults_are_told_in_our_words(fault: Exception, error: type[Exception]):
    with pytest.raises(error) as caught:
        await backend(fault).send(REQUEST, {})
    assert "bedrock" in str(caught.value)


async def test_a_reply_comes_back_raw():
    one = backend(message(text("hello")))
    assert (await one.send(REQUEST, {})).text == "hello"
    await one.aclose()


def test_without_the_optional_sdk_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelNotConfigured, match="pip install"):
        open_bedrock(access_key="a", secret_key="s", session_token=None, region="eu-west-1")
