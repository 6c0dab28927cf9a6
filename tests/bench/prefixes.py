"""Input tokens of requests that a provider's prefix cache could serve.

Providers store prefixes of requests and charge little for a repeated one. Like a provider, this module compares
requests from the first token, in steps of 128 tokens, and ignores matches below 1,024 tokens
(https://platform.openai.com/docs/guides/prompt-caching). A token has about four characters; an image is
one step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.standin.call import Call

CHARS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1_000
STEP_CHARS = 512
"""About 128 tokens."""
MIN_PREFIX_TOKENS = 1024


@dataclass(slots=True)
class PrefixCache:
    """Simulated prefix cache of a provider.

    ``sent`` is the number of input tokens of all requests, ``fresh`` the part that was not a prefix of an earlier
    request.
    ``fresh_until_answered`` is the same if a prefix can be reused only after the reply to its request, so that
    concurrent votes share no prefix. Real providers are between the two.
    """

    sent: float = 0.0
    fresh: float = 0.0
    fresh_until_answered: float = 0.0
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


def _known(digests: list[bytes], sizes: list[float], seen: set[bytes]) -> float:
    """Return how many of the first tokens are known."""
    known = 0.0
    for digest, size in zip(digests, sizes, strict=True):
        if digest not in seen:
            break
        known += size
    return known if known >= MIN_PREFIX_TOKENS else 0.0


def _steps(call: Call) -> Iterator[tuple[bytes, float]]:
    """Yield a digest of the prefix up to the end of each step, and the step's tokens."""
    digest = hashlib.blake2b(call.model.encode(), digest_size=16)
    for message in call.messages:
        digest.update(f"\0{message['role']}\0".encode())
        for piece, tokens in _pieces(message["content"]):
            digest.update(piece.encode())
            yield digest.digest(), tokens


def _pieces(content: object) -> Iterator[tuple[str, float]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    assert isinstance(parts, list)
    for part in parts:
        if part["type"] == "image_url":
            yield part["image_url"]["url"], TOKENS_PER_IMAGE
        else:
            text = part["text"]
            for start in range(0, len(text), STEP_CHARS):
                piece = text[start : start + STEP_CHARS]
                yield piece, len(piece) / CHARS_PER_TOKEN
