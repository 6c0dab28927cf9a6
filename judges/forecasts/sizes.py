"""How many tokens a request will be and its reply will have, guessed without the provider's tokeniser.

Four characters of English are a token, and a character of most other writings is more than half of one
(https://help.openai.com/en/articles/4936856); a screenshot is about what OpenAI counts for one at high detail. What a
judge file's past runs took is better than any of this, and goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from judges.llm.families import family_of

CHARS_PER_TOKEN: Final = 4.0
FOREIGN_CHARS_PER_TOKEN: Final = 1.6
TOKENS_PER_IMAGE: Final = 1_000
VERDICT_TOKENS: Final = 45
"""A verdict with its reasoning and quotes."""
THINKING_TOKENS: Final = 400
"""What a reasoning model writes for itself before."""

_THINKING: Final = ("openai-reasoning", "openai-gpt-5", "qwen-reasoning", "mistral-reasoning", "deepseek-reasoning")


def text_tokens(text: str) -> float:
    """The tokens of a text.

    >>> text_tokens("Four characters!"), round(text_tokens("東京都"), 1)
    (4.0, 1.9)
    """
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return plain / CHARS_PER_TOKEN + (len(text) - plain) / FOREIGN_CHARS_PER_TOKEN


def input_tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    """The tokens of what is sent."""
    return sum(_content_tokens(message.get("content")) for message in messages)


def thinking_tokens(model: str) -> float:
    """What a model writes besides its reply."""
    family = family_of(model)
    return THINKING_TOKENS if family is not None and family.name in _THINKING else 0.0


def _content_tokens(content: Any) -> float:
    if isinstance(content, str):
        return text_tokens(content)
    total = 0.0
    for part in content or ():
        total += text_tokens(str(part.get("text", ""))) if part.get("type") == "text" else TOKENS_PER_IMAGE
    return total
