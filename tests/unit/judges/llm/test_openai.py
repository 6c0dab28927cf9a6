from __future__ import annotations

import json

import pytest

from judges.llm.openai import read_completion
from judges.llm.provider_adapter import MAX_BROKEN_CHARS, FinishReason


def body(**changes: object) -> str:
    choice = {"finish_reason": "stop", "message": {"content": "hello", "refusal": None}} | changes
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    return json.dumps({"model": "gpt-4o-2024-08-06", "choices": [choice], "usage": usage})


def test_completion_is_read_with_its_token_counts():
    reply = read_completion(body())
    assert (reply.text, reply.finish, reply.model) == ("hello", FinishReason.STOP, "gpt-4o-2024-08-06")
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (9, 3, 4)


@pytest.mark.parametrize(
    ("changes", "finish"),
    [
        ({"finish_reason": "length"}, FinishReason.LENGTH),
        ({"finish_reason": "error"}, FinishReason.BROKEN),
        ({"message": {"content": None, "refusal": "No."}}, FinishReason.REFUSAL),
    ],
)
def test_finish_reason_is_mapped(changes: dict[str, object], finish: FinishReason):
    assert read_completion(body(**changes)).finish is finish


@pytest.mark.parametrize(
    ("end", "finish"),
    [
        ("", FinishReason.BROKEN),
        ("data: [DONE]\n\n", FinishReason.STOP),
        ('data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\n', FinishReason.LENGTH),
    ],
)
def test_stream_without_an_end_is_broken(end: str, finish: FinishReason):
    assert read_completion('data: {"choices": [{"delta": {"content": "hel"}}]}\n\n' + end).finish is finish


@pytest.mark.parametrize(
    "broken",
    ["", "<html>", '{"choices": []}', '{"choices": [{"message": null}]}'],
)
def test_invalid_completion_is_broken_and_raises_nothing(broken: str):
    reply = read_completion(broken)
    assert (reply.finish, reply.text) == (FinishReason.BROKEN, broken)
    assert "check the provider's address" in reply.detail
    assert len(read_completion("x" * 1_000_000).text) == MAX_BROKEN_CHARS


@pytest.mark.parametrize("usage", [None, "few"])
def test_unreported_token_counts_are_unknown(usage: object):
    reply = read_completion(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert (reply.finish, reply.input_tokens, reply.output_tokens) == (FinishReason.STOP, None, None)
