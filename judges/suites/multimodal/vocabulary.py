"""The byte-pair vocabulary cl100k_base, by which operations are compared token by token.

Its rank file is part of this package, compressed, so that no score depends on a download. What is unpacked is
checked against the published SHA-256 before it is used.
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
# How the published encoding cuts a text into words before it merges bytes.
_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)


def token_ids(text: str) -> tuple[int, ...]:
    """The tokens of a text; what looks like a special token is ordinary text.

    The first call unpacks the vocabulary, which takes about half a second: make it in a thread.

    >>> token_ids("type boston")
    (1337, 293, 9611)
    """
    return tuple(_encoding().encode_ordinary(text))


@cache
def _encoding() -> tiktoken.Encoding:
    """Raises DataUnreadable when the shipped file is not the published one."""
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    ranks = unpacked_ranks(packed)
    lines = (line.split() for line in ranks.splitlines() if line)
    merges = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding(NAME, pat_str=_WORDS, mergeable_ranks=merges, special_tokens={})


def unpacked_ranks(packed: bytes) -> bytes:
    """The rank file out of its compression.

    Raises:
        DataUnreadable: it is damaged, or another file.
    """
    try:
        ranks = lzma.decompress(packed)
    except (lzma.LZMAError, EOFError) as error:
        raise DataUnreadable(_FILE, f"cannot be unpacked: {error}") from error
    if hashlib.sha256(ranks).hexdigest() != RANKS_SHA256:
        raise DataUnreadable(_FILE, f"is not the vocabulary {NAME}: its SHA-256 differs")
    return ranks
