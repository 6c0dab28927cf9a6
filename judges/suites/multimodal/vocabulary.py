"""Tokens of cl100k_base, used to compare operations."""

from __future__ import annotations

from judges.tokenizers import load_encoding


def token_ids(text: str) -> tuple[int, ...]:
    """Return the tokens of a text. Special tokens are treated as ordinary text.

    The first call unpacks the vocabulary (about 0.5 s), so make it in a thread.

    >>> token_ids("type boston")
    (1337, 293, 9611)
    """
    return tuple(load_encoding("cl100k_base").encode_ordinary(text))
