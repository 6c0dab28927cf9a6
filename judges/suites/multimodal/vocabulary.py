"""Tokenizer cl100k_base, used to compare operations.

The package contains the compressed rank file, so scores do not depend on a download. The unpacked file is checked
against the published SHA-256 before use.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
from functools import cache
from importlib import resources

import tiktoken

from judges.suites.errors import DataUnreadable

RANKS_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
NAME = "cl100k_base"
_FILE = f"{NAME}.tiktoken.xz"
# Pre-tokenization pattern of the published encoding.
_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)


def token_ids(text: str) -> tuple[int, ...]:
    """Return the tokens of a text. Special tokens are treated as ordinary text.

    The first call unpacks the vocabulary (about 0.5 s), so make it in a thread.

    >>> token_ids("type boston")
    (1337, 293, 9611)
    """
    return tuple(_encoding().encode_ordinary(text))


@cache
def _encoding() -> tiktoken.Encoding:
    """Return the encoding.

    Raises:
        DataUnreadable: the shipped file differs from the published one.
    """
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    ranks = unpacked_ranks(packed)
    lines = (line.split() for line in ranks.splitlines() if line)
    merges = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding(NAME, pat_str=_WORDS, mergeable_ranks=merges, special_tokens={})


def unpacked_ranks(packed: bytes) -> bytes:
    """Return the decompressed rank file.

    Raises:
        DataUnreadable: the file is damaged, or is not the published one.
    """
    try:
        ranks = lzma.decompress(packed)
    except (lzma.LZMAError, EOFError) as error:
        raise DataUnreadable(_FILE, f"cannot be unpacked: {error}") from error
    if hashlib.sha256(ranks).hexdigest() != RANKS_SHA256:
        raise DataUnreadable(_FILE, f"is not the vocabulary {NAME}: its SHA-256 differs")
    return ranks
