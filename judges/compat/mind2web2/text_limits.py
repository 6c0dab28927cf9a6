"""Limits of page texts in tokens, with the tokenizer that a script may replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judges import tokenizers
from judges.tokenizers import TEXT_ENCODING, TRUNCATION_MARKER
from mind2web2.foreign_client import foreign_object
from mind2web2.llm_client.judge import HarnessError

current_encoding: Callable[[], Callable[[], Any]] = lambda: tokenizers.text_encoding  # noqa: E731
"""Returns the function that loads the tokenizer. ``eval_toolkit`` sets it, because scripts replace the name there."""


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text in ``TEXT_ENCODING``. Special tokens are treated as ordinary text.

    Raises:
        HarnessError: the tokenizer cannot be used.
    """
    with foreign_object(_tokenizer_failed):
        return len(tokenizers.tokens_of(text, current_encoding()()))


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """Return a text of at most ``max_tokens`` tokens, with ``TRUNCATION_MARKER`` after it if it was cut.

    Line breaks are kept. A text of at most ``max_tokens`` bytes in UTF-8 is returned without using the tokenizer.

    Raises:
        HarnessError: the tokenizer cannot be used.
    """
    load = current_encoding()
    with foreign_object(_tokenizer_failed):
        kept = tokenizers.first_tokens(text, max_tokens, None if load is tokenizers.text_encoding else load)
    return text if kept is None else kept + TRUNCATION_MARKER


def _tokenizer_failed(error: Exception) -> HarnessError:
    return HarnessError(f"The tokenizer {TEXT_ENCODING} cannot be used: {error}")
