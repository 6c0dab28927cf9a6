"""Call log: complete and deduplicated record of model requests and replies."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

import pytest

from judges.errors import LLMOutputUnusable, LLMUnavailable
from judges.llm.call_recording import (
    CallLogUnreadable,
    CallRecorder,
    ParsedCallLog,
    join_pieces,
    portable_request_key,
    read_calls,
    recorded_request_key,
)
from judges.llm.client import LLMRequest
from judges.llm.encoding import DataURI, image_part
from judges.llm.observed import ObservedLLM
from judges.prompting.blocks import BlockBuilder
from judges.prompting.prompts import load_prompt
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.llm import RuleLLM

PAGE = "A long page about lamps. " * 200
PROMPT = load_prompt("verify_page")
JPEG = b"\xff\xd8 a picture"


def request(claim: str, *, secret: bytes = b"one secret of many", vote: int = 0, picture: bool = False) -> LLMRequest:
    block_builder = BlockBuilder(secret)
    text = f"{block_builder.block('page', PAGE)}\n\n{block_builder.block('claim', claim)}"
    content = [image_part(DataURI.of_jpeg(JPEG))] if picture else []
    return LLMRequest(
        model="o4-mini",
        messages=(
            {"role": "system", "content": PROMPT.text},
            {"role": "user", "content": [*content, {"type": "text", "text": text}]},
        ),
        schema=BinaryEvalResult,
        purpose="verify",
        prompt=PROMPT.ref,
        vote=vote,
        parts={"claim": claim},
    )


async def recorded(*requests: LLMRequest, llm: Any = None, **options: Any) -> ParsedCallLog:
    recorder = CallRecorder("res_1", **{"kept": lambda sha256: False, "mask": str, **options})
    client = ObservedLLM(llm or RuleLLM(), (recorder,))
    for each in requests:
        with contextlib.suppress(LLMUnavailable, LLMOutputUnusable):
            await client.complete(each)
    body = await recorder.finish()
    recorder.close()
    return read_calls(body)


def text_of(calls: ParsedCallLog) -> Any:
    return lambda sha256: calls.piece(sha256).data.decode()


async def test_requests_and_replies_are_read_back_exactly():
    asked = [request("the lamp is green"), request("the lamp is red", vote=1)]
    calls = await recorded(*asked)
    assert len(calls.calls) == 2
    for call in calls.calls:
        written = next(each for each in asked if each.vote == call["vote"])
        found = call["messages"][1]["content"][0]["text"]
        assert join_pieces(found, text_of(calls)) == written.messages[1]["content"][0]["text"]
        assert json.loads(call["reply"])["result"] is True
    assert calls.prompts == {PROMPT.ref: PROMPT.text}
    assert [schema["name"] for schema in calls.schemas.values()] == ["BinaryEvalResult"]


async def test_picture_stored_with_its_page_is_not_stored_again():
    sha256 = hashlib.sha256(JPEG).hexdigest()
    calls = await recorded(request("x", picture=True))
    assert calls.piece(sha256).data == JPEG
    assert calls.piece(sha256).kind == "image/jpeg"
    without = await recorded(request("x", picture=True), kept=lambda found: found == sha256)
    assert sha256 not in without.pieces
    assert without.calls[0]["messages"][1]["content"][0]["image_url"]["url"]["picture"] == sha256


async def test_fault_is_recorded_with_secrets_masked():
    llm = RuleLLM(lambda asked: LLMUnavailable("wrong key sk-1234", usage=Usage(calls=1)))
    calls = await recorded(request("x"), llm=llm, mask=lambda text: text.replace("sk-1234", "[redacted]"))
    assert calls.calls[0]["fault"] == {
        "error": "LLMUnavailable",
        "reason": "llm_unavailable",
        "message": "wrong key [redacted]",
    }
    assert calls.calls[0]["usage"]["calls"] == 1
    assert "reply" not in calls.calls[0]


async def test_request_key_is_equal_in_another_installation():
    calls = await recorded(request("the lamp is green", picture=True))
    key = recorded_request_key(calls.calls[0], text_of(calls))
    assert portable_request_key(request("the lamp is green", picture=True, secret=b"another secret of another")) == key


@pytest.mark.parametrize("body", [b"", b"ASSAYCALLS1\n" + bytes(8) + b"x", b"ASSAYCALLS2\nabc"])
def test_invalid_call_log_is_rejected(body: bytes):
    with pytest.raises(CallLogUnreadable):
        read_calls(body)
