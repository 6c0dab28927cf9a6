"""Token estimates of requests and replies, without the provider's tokenizer.

A token has about four characters of English; in most other scripts a character is more than half a token
(https://help.openai.com/en/articles/4936856). A screenshot counts about as many tokens as OpenAI charges at high
detail. Token counts of past runs of a judge file take precedence over these estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from judges.llm.families import is_reasoning_model

CHARS_PER_TOKEN: Final = 4.0
FOREIGN_CHARS_PER_TOKEN: Final = 1.6
TOKENS_PER_IMAGE: Final = 1_000
VERDICT_TOKENS: Final = 45
"""Output tokens of a verdict with reasoning and quotes."""
THINKING_TOKENS: Final = 400
"""Reasoning tokens of one reply at the provider's default effort."""
EFFORT_TOKENS: Final = {
    "none": 0,
    "minimal": 50,
    "low": 150,
    "medium": 400,
    "high": 1_000,
    "xhigh": 2_000,
    "max": 4_000,
}
"""Reasoning tokens of one reply by effort. Estimates, replaced by those of past runs."""


def text_tokens(text: str) -> float:
    """Return the estimated tokens of a text.

    >>> text_tokens("Four characters!"), round(text_tokens("東京都"), 1)
    (4.0, 1.9)
    """
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return plain / CHARS_PER_TOKEN + (len(text) - plain) / FOREIGN_CHARS_PER_TOKEN


def input_tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    """Return the estimated tokens of messages."""
    return sum(_content_tokens(message.get("content")) for message in messages)


def thinking_tokens(model: str, effort: str | None = None) -> float:
    """Return the estimated reasoning tokens of a reply, which count as output. ``effort``: as requested."""
    if effort is not None:
        return EFFORT_TOKENS.get(effort, THINKING_TOKENS)
    return THINKING_TOKENS if is_reasoning_model(model) else 0.0


def _content_tokens(content: Any) -> float:
    if isinstance(content, str):
        return text_tokens(content)
    total = 0.0
    for part in content or ():
        total += text_tokens(str(part.get("text", ""))) if part.get("type") == "text" else TOKENS_PER_IMAGE
    return total
