"""A picture as the data URI that is sent with every request about its page: encoded once, hashed once."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Self


class DataURI(str):
    """A ``data:`` URI that knows its SHA-256 (hex) and its bytes, so that no request works them out again.

    It is an ordinary string to everything else. Base64 needs no escaping in JSON.
    """

    __slots__ = ("ascii", "sha256")

    ascii: bytes
    sha256: str

    @classmethod
    def of_jpeg(cls, jpeg: bytes) -> Self:
        """Encode JPEG bytes. Takes milliseconds per megabyte: call it in a thread."""
        encoded = b"data:image/jpeg;base64," + base64.b64encode(jpeg)
        uri = cls(encoded.decode("ascii"))
        uri.ascii = encoded
        uri.sha256 = hashlib.sha256(encoded).hexdigest()
        return uri


def image_part(uri: str) -> dict[str, Any]:
    """A picture as a part of a chat message."""
    return {"type": "image_url", "image_url": {"url": uri, "detail": "high"}}
