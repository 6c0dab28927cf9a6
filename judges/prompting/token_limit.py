"""Limit of page text in prompts, in tokens. CPU-bound for long texts: call it in a thread.

Texts that are within the limit in UTF-8 bytes need no tokenizer, because a token has at least one byte. Most of the
others are within the limit even if they are encoded with a part of the vocabulary, which needs a third of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from judges.tokenizers import load_encoding

TEXT_ENCODING: Final = "o200k_base"
MAX_TEXT_TOKENS: Final = 100_000
TRUNCATION_MARKER: Final = "\n[The page goes on; it was cut here.]"
"""Follows a text that was cut."""
_BOUND_RANKS: Final = 50_000
"""Size of the part of the vocabulary. With it, texts have 3 to 10 % more tokens."""
_BOUND_BYTES: Final = 6
"""A text with more bytes per permitted token is nearly always too long, so only the whole vocabulary is used."""
_READ_CHARS: Final = 12
"""The beginning of a text with this many characters per permitted token nearly always has enough tokens."""
_PIECE_CHARS: Final = 4_000
_MAX_BYTES_PER_CHAR: Final = 4


class Encoding(Protocol):
    """Tokenizer with the methods of ``tiktoken.Encoding`` that are used here."""

    def encode(self, text: str, *, disallowed_special: Any) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


def text_encoding() -> Encoding:
    """Return the tokenizer for page texts.

    Raises:
        judges.tokenizers.TokenizerUnusable: it cannot be loaded.
    """
    return load_encoding(TEXT_ENCODING)


def tokens_of(text: str, encoding: Encoding) -> list[int]:
    """Return the tokens of a text. Special tokens are treated as ordinary text.

    The pattern of the tokenizer fails on very long runs of white space. Such a text is encoded in pieces.
    """
    try:
        return encoding.encode(text, disallowed_special=())
    except ValueError:
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        return [token for piece in pieces for token in encoding.encode(piece, disallowed_special=())]


def first_tokens(
    text: str, max_tokens: int = MAX_TEXT_TOKENS, load: Callable[[], Encoding] | None = None
) -> str | None:
    """Return the text of the first ``max_tokens`` tokens, or None if the text has no more than that.

    ``load`` returns the tokenizer (default: that for page texts). It is called only if it is needed.

    Raises:
        judges.tokenizers.TokenizerUnusable: the text has more bytes, and the tokenizer cannot be loaded.
    """
    if fits_in_bytes(text, max_tokens):
        return None
    text = _without_surrogates(text)
    if load is None and fits_in_bytes(text, _BOUND_BYTES * max_tokens):
        bound = tokens_of(text, load_encoding(TEXT_ENCODING, _BOUND_RANKS))
        if len(bound) <= max_tokens:
            return None
    encoding = (load or text_encoding)()
    read = text[: _READ_CHARS * max(0, max_tokens)]
    tokens = tokens_of(read, encoding)
    # The rest of a long text does not change its first tokens.
    if len(read) < len(text) and len(tokens) <= max_tokens + _PIECE_CHARS:
        tokens = tokens_of(text, encoding)
    if len(tokens) <= max_tokens:
        return None
    return encoding.decode(tokens[: max(0, max_tokens)]).rstrip("\ufffd")  # an incomplete character


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates as the tokenizer does, which is slow for texts with many of them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def fits_in_bytes(text: str, max_bytes: int) -> bool:
    """Return whether a text has at most ``max_bytes`` bytes in UTF-8."""
    if len(text) * _MAX_BYTES_PER_CHAR <= max_bytes:
        return True
    return len(text) <= max_bytes and len(text.encode("utf-8", errors="surrogatepass")) <= max_bytes
