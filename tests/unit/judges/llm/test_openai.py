from __future__ import annotations

import json

import pytest

from judges.llm.chat_body import chat_body, request_parts
from judges.llm.client import LLMRequest
from judges.llm.error_mapping import ErrorResponse
from judges.llm.openai import read_completion
from judges.llm.provider_adapter import MAX_BROKEN_CHARS, FinishReason
from judges.llm.request_formats import RequestFormat, adapt_format


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
        ({"finish_reason": "content_filter"}, FinishReason.FILTER),
        ({"finish_reason": "error"}, FinishReason.BROKEN),
        ({"finish_reason": None}, FinishReason.STOP),
        ({"finish_reason": "eos"}, FinishReason.STOP),
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
    ["", "<html>", "{}", "[]", "null", '{"choices": []}', '{"choices": [{}]}', '{"choices": [{"message": null}]}', "3"],
)
def test_invalid_completion_is_broken_and_raises_nothing(broken: str):
    reply = read_completion(broken)
    assert (reply.finish, reply.text) == (FinishReason.BROKEN, broken)
    assert "check the provider's address" in reply.detail
    assert len(read_completion("x" * 1_000_000).text) == MAX_BROKEN_CHARS


@pytest.mark.parametrize("content", [None, ""])
def test_refusal_text_is_the_reply_text(content: str | None):
    assert read_completion(body(message={"content": content, "refusal": "No."})).text == "No."


@pytest.mark.parametrize(
    ("reported", "known"), [(9.0, 9), ("9", None), ([9], None), (-9, None), (10**30, None), (float("nan"), None)]
)
def test_impossible_token_counts_are_unknown(reported: object, known: int | None):
    counts = json.loads(body()) | {"usage": {"prompt_tokens": reported, "completion_tokens": 3}}
    reply = read_completion(json.dumps(counts))
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("hello", known, 3)


@pytest.mark.parametrize("usage", [None, 7, "few", [9, 3], {"prompt_tokens_details": "x"}])
def test_unreported_token_counts_are_unknown(usage: object):
    reply = read_completion(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert (reply.finish, reply.input_tokens, reply.output_tokens) == (FinishReason.STOP, None, None)


def test_metadata_is_left_out_for_a_server_that_rejects_it():
    """OpenAI itself accepts metadata only for stored completions."""
    request = LLMRequest(model="gpt-4o", messages=({"role": "user", "content": "hi"},), metadata={"sample_id": "T_a"})
    body = chat_body(request, {"temperature": 0.0}, RequestFormat())
    assert body["metadata"] == {"sample_id": "T_a"}
    refused = ErrorResponse(
        provider="openai", status=400, message="The 'metadata' parameter is only allowed when 'store' is enabled."
    )
    parts = request_parts(request, body, RequestFormat(), may_drop_images=True)
    adapted = adapt_format(RequestFormat(), refused, parts)
    assert adapted is not None
    assert chat_body(request, {"temperature": 0.0}, adapted).keys() == {"model", "messages", "temperature"}
