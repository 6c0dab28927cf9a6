"""Image as a data URI that is encoded and hashed once and sent with every request about its page."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Self

_PLAIN = re.compile(r"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*")


_PIECE_BYTES = 96 * 1024
"""Pictures are encoded in pieces of this size: a multiple of three, and small enough for memory that is reused."""


class DataURI(str):
    """``data:`` URI with its SHA-256 (hex), so that requests need not compute it again.

    ``picture_sha256`` is the hash of the image bytes, or "" if unknown. If it is known, ``sha256`` is derived from it,
    which avoids hashing a megabyte of base64.

    It can be used like any string. The encoded bytes are not stored: base64 is ASCII and needs no escaping in JSON, so
    that encoding it is fast, and storing it would double the memory.
    """

    __slots__ = ("picture_sha256", "sha256")

    sha256: str
    picture_sha256: str

    @classmethod
    def of_jpeg(cls, jpeg: bytes, *, sha256: str = "") -> Self:
        """Encode JPEG bytes; ``sha256`` is their hash if known. Call it in a thread: it takes milliseconds per MB."""
        pieces = (
            base64.b64encode(jpeg[start : start + _PIECE_BYTES]).decode() for start in range(0, len(jpeg), _PIECE_BYTES)
        )
        return cls._of("".join(["data:image/jpeg;base64,", *pieces]), picture_sha256=sha256)

    @classmethod
    def given(cls, uri: str) -> str:
        """Return ``uri`` as a ``DataURI`` if it is an image in plain base64. Call it in a thread.

        Any other URI stays an ordinary string, because it must be escaped in JSON.
        """
        return cls._of(uri) if _PLAIN.fullmatch(uri) else uri

    @classmethod
    def _of(cls, encoded: str, *, picture_sha256: str = "") -> Self:
        uri = cls(encoded)
        hashed = f"picture {picture_sha256}" if picture_sha256 else encoded
        uri.sha256 = hashlib.sha256(hashed.encode("ascii")).hexdigest()
        uri.picture_sha256 = picture_sha256
        return uri


def image_part(uri: str) -> dict[str, Any]:
    """Return the part of a chat message for an image."""
    return {"type": "image_url", "image_url": {"url": uri, "detail": "high"}}
