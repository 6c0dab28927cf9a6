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
        ("request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 12345),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
        ("Range of input length should be [1, 30720]", 30720, None),
        ("openai: 400 your prompt has 5,000 tokens", None, 5000),
        ("Input is too long for requested model.", None, None),
        ("gpt-4-1106 of 2024-12-17: the input is too long", None, None),
    ],
)  # fmt: skip
def test_limit_and_request_size_are_parsed_from_an_error(words: str, limit: int | None, asked: int | None):
    assert parse_token_counts(words) == TokenCounts(limit, asked)


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
