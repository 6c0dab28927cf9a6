"""Tokenizers of OpenAI, with their rank files, so that limits and scores do not depend on a download.

The unpacked file is checked against the published SHA-256 before use.
"""

from __future__ import annotations

import base64
import hashlib
import io
import lzma
from collections.abc import Mapping
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
