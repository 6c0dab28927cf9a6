"""Bytes of requests that a provider's prefix cache could serve.

Providers store prefixes of requests and charge little for a repeated one. Like a provider, this module compares
requests from the first byte, in steps of about 128 tokens, and ignores matches below about 1,024 tokens. An image
counts as one step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.standin.call import Call

STEP_BYTES = 512
MIN_PREFIX_BYTES = 4096


@dataclass(slots=True)
class PrefixCache:
    """Simulated prefix cache of a provider.

    ``sent`` is the number of bytes of all requests, ``fresh`` the part that was not a prefix of an earlier request.
    ``fresh_until_answered`` is the same if a prefix can be reused only after the reply to its request, so that
    concurrent votes share no prefix. Real providers are between the two.
    """

    sent: int = 0
    fresh: int = 0
    fresh_until_answered: int = 0
    _arrived: set[bytes] = field(default_factory=set)
    _answered: set[bytes] = field(default_factory=set)

    def add_request(self, call: Call) -> list[bytes]:
        """Count a request; pass the returned digests to ``add_reply``."""
        digests, sizes = [], []
        for digest, size in _steps(call):
            digests.append(digest)
            sizes.append(size)
        total = sum(sizes)
        self.sent += total
        self.fresh += total - _known(digests, sizes, self._arrived)
        self.fresh_until_answered += total - _known(digests, sizes, self._answered)
        self._arrived.update(digests)
        return digests

    def add_reply(self, digests: list[bytes]) -> None:
        """Make the prefixes of a request reusable after its reply."""
        self._answered.update(digests)


def _known(digests: list[bytes], sizes: list[int], seen: set[bytes]) -> int:
    """Return how many of the first bytes are known."""
    known = 0
    for digest, size in zip(digests, sizes, strict=True):
        if digest not in seen:
            break
        known += size
    return known if known >= MIN_PREFIX_BYTES else 0


def _steps(call: Call) -> Iterator[tuple[bytes, int]]:
    """Yield a digest of the prefix up to the end of each step, and the step's size."""
    digest = hashlib.blake2b(call.model.encode(), digest_size=16)
    for message in call.messages:
        digest.update(f"\0{message['role']}\0".encode())
        for piece in _pieces(message["content"]):
            digest.update(piece)
            yield digest.digest(), len(piece)


def _pieces(content: object) -> Iterator[bytes]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    assert isinstance(parts, list)
    for part in parts:
        if part["type"] == "image_url":
            yield part["image_url"]["url"].encode()
        else:
            text = part["text"].encode()
            yield from (text[start : start + STEP_BYTES] for start in range(0, len(text), STEP_BYTES))
