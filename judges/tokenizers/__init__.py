"""Tokenizers of OpenAI, with their rank files, so that limits and scores do not depend on a download.

The unpacked file is checked against the published SHA-256 before use.

The limit of page text in prompts is in tokens. It is CPU-bound for long texts: call it in a thread. Texts within the
limit in UTF-8 bytes need no tokenizer, because a token has at least one byte. Most of the others are within the limit
even if they are encoded with a part of the vocabulary, which needs a third of the memory.
"""

from __future__ import annotations

import base64
import hashlib
import io
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Final

from judges.errors import JudgeError

if TYPE_CHECKING:
    import tiktoken


class TokenizerUnusable(JudgeError):
    """A tokenizer's rank file is missing, damaged or not the published one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published:
    """Published encoding: digest of its rank file, pre-tokenization pattern and special tokens."""

    sha256: str
    pattern: str
    special_tokens: Mapping[str, int] = field(default_factory=dict)


_PUBLISHED: Final[Mapping[str, _Published]] = {
    "cl100k_base": _Published(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
            r"|\s+(?!\S)|\s"
        ),
    ),
    "o200k_base": _Published(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern=(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        special_tokens={"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
    ),
}


_loading = Lock()
"""Pages are prepared in several threads. Only one of them loads an encoding."""


def load_encoding(name: str, max_ranks: int | None = None) -> tiktoken.Encoding:
    """Return a shipped encoding: cl100k_base or o200k_base. The first call takes about 0.4 s: make it in a thread.

    With ``max_ranks``, the encoding has only the first tokens of the vocabulary, and no special tokens. It takes less
    time and memory (50,000 of o200k_base: 13 instead of 43 MiB), and a text never has fewer tokens in it than in the
    whole encoding: byte pair encoding merges the pair of the lowest rank first, so that the whole encoding makes the
    same merges, followed by more of them.

    Raises:
        TokenizerUnusable: the shipped file cannot be used.
    """
    with _loading:
        return _load(name, max_ranks)


def unload_encodings() -> None:
    """Release the memory of all encodings. They are loaded again when they are needed."""
    _load.cache_clear()


@cache
def _load(name: str, max_ranks: int | None) -> tiktoken.Encoding:
    import tiktoken  # here, because only long pages need it

    published = _PUBLISHED[name]
    try:
        packed = resources.files(__package__).joinpath(f"{name}.tiktoken.xz").read_bytes()
    except OSError as error:
        raise TokenizerUnusable(f"{name}.tiktoken.xz: cannot be read: {error}") from error
    lines = (line.split() for line in islice(io.BytesIO(unpacked_ranks(packed, name)), max_ranks))
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    special_tokens = dict(published.special_tokens) if max_ranks is None else {}
    encoding = tiktoken.Encoding(name, pat_str=published.pattern, mergeable_ranks=ranks, special_tokens=special_tokens)
    ranks.clear()  # the encoding has its own copy; this one would take another 22 MB
    return encoding


def unpacked_ranks(packed: bytes, name: str) -> bytes:
    """Return the decompressed rank file of an encoding.

    Raises:
        TokenizerUnusable: the file is damaged, or is not the published one.
    """
    try:
        ranks = lzma.decompress(packed)
    except (lzma.LZMAError, EOFError) as error:
        raise TokenizerUnusable(f"{name}.tiktoken.xz: cannot be unpacked: {error}") from error
    if hashlib.sha256(ranks).hexdigest() != _PUBLISHED[name].sha256:
        raise TokenizerUnusable(f"{name}.tiktoken.xz: is not the vocabulary {name}: its SHA-256 differs")
    return ranks


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


def text_encoding() -> tiktoken.Encoding:
    """Return the tokenizer for page texts.

    Raises:
        judges.tokenizers.TokenizerUnusable: it cannot be loaded.
    """
    return load_encoding(TEXT_ENCODING)


def tokens_of(text: str, encoding: tiktoken.Encoding) -> list[int]:
    """Return the tokens of a text. Special tokens are treated as ordinary text.

    The pattern of the tokenizer fails on very long runs of white space. Such a text is encoded in pieces.
    """
    try:
        return encoding.encode(text, disallowed_special=())
    except ValueError:
        pieces = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
        return [token for piece in pieces for token in encoding.encode(piece, disallowed_special=())]


def first_tokens(
    text: str, max_tokens: int = MAX_TEXT_TOKENS, load: Callable[[], tiktoken.Encoding] | None = None
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
