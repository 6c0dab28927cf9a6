from __future__ import annotations

import pytest

from judges.llm.client import LLMRequest
from judges.llm.remote import ContextWindows, TokenCounts, parse_token_counts


def request(tokens: int) -> LLMRequest:
    """Return a request that the client estimates at ``tokens``."""
    return LLMRequest(model="m", messages=({"role": "user", "content": "x" * 3 * tokens},), purpose="verify")


@pytest.mark.parametrize(
    ("words", "limit", "asked"),
    [
        ("This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens", 4096, 5000),
        ("you requested 5000 tokens (4500 in the messages, 500 in the completion), the limit is 4096", 4096, 5000),
        ("exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4500 tokens "
         "from the input messages and 500 tokens for the completion", 4096, 5000),
        ("request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 12345),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)", 1048576, 1200000),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4096, 5000),
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
         32768, 40000),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096", 4096, 5000),
        ("total number of tokens in the prompt cannot exceed 4081 - received 5000", 4081, 5000),
        ("exceeded model token limit: 8192 (requested: 9000)", 8192, 9000),
        ("openai: 400 maximum context length is 8192 tokens", 8192, None),
        ("Range of input length should be [1, 30720]", 30720, None),
        ("openai: 400 your prompt has 5,000 tokens", None, 5000),
        ("Input is too long for requested model.", None, None),
        ("gpt-4-1106 of 2024-12-17: the input is too long", None, None),
    ],
)  # fmt: skip
def test_limit_and_request_size_are_parsed_from_an_error(words: str, limit: int | None, asked: int | None):
    assert parse_token_counts(words) == TokenCounts(limit, asked)


def test_limit_alone_is_compared_with_the_estimate():
    assert ContextWindows().record_rejected(request(10_000), "maximum context length is 8000 tokens") == pytest.approx(
        0.68
    )


def test_limit_is_remembered_for_errors_that_contain_none():
    windows = ContextWindows()
    windows.record_rejected(request(10_000), "maximum context length is 8000 tokens")
    assert windows.record_rejected(request(16_000), "the input is too long") == pytest.approx(0.85 / 2)


def test_token_count_of_the_provider_corrects_the_estimate():
    windows = ContextWindows()
    windows.record_accepted(request(1_000), 500)
    assert windows.record_rejected(request(20_000), "the limit is 8000 tokens") == pytest.approx(0.68)
    assert windows.record_rejected(request(20_000), "your prompt has 40000 tokens") == pytest.approx(0.17)


def test_largest_accepted_request_is_the_limit_if_none_is_known():
    windows = ContextWindows()
    assert windows.record_rejected(request(10_000), "too long") == 0.5
    windows.record_accepted(request(8_000), None)
    assert windows.record_rejected(request(10_000), "too long") == pytest.approx(0.68)


def test_rejected_sizes_are_not_tried_again():
    windows = ContextWindows()
    windows.record_rejected(request(10_000), "too long")
    windows.record_rejected(request(5_000), "too long")
    assert windows.record_rejected(request(10_000), "too long") == 0.25


def test_limits_are_stored_per_model():
    windows = ContextWindows()
    windows.record_rejected(request(10_000), "maximum context length is 1000 tokens")
    other = LLMRequest(model="n", messages=request(10_000).messages)
    assert windows.record_rejected(other, "too long") == 0.5
