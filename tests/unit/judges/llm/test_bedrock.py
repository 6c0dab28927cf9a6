from __future__ import annotations

from types import SimpleNamespace

import pytest

from judges.errors import LLMRejected, LLMTimeout, LLMUnavailable
from judges.llm.bedrock import MAX_OUTPUT_TOKENS, BedrockAdapter, message_body, read_message
from judges.llm.client import LLMRequest
from judges.llm.encoding import DataURI, image_part
from judges.llm.provider_adapter import FinishReason
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


def test_tool_input_is_the_reply():
    call = SimpleNamespace(type="tool_use", input={"reasoning": "x", "result": True})
    reply = read_message(message(text("Let me see."), call))
    assert (reply.text, reply.finish) == ('{"reasoning": "x", "result": true}', FinishReason.STOP)
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (6, 2, 1)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (StatusError(529, {"error": {"type": "overloaded_error", "message": "busy"}}), LLMUnavailable),
        (StatusError(403), LLMRejected),
        (TimedOut("late"), LLMTimeout),
    ],
)
async def test_sdk_errors_are_mapped_to_llm_errors(fault: Exception, error: type[Exception]):
    with pytest.raises(error) as caught:
        await backend(fault).send(REQUEST, {})
    assert "bedrock" in str(caught.value)
