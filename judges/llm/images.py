"""A picture as the data URI that is sent with every request about its page: encoded once, hashed once."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Self

_PLAIN = re.compile(r"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*")


class DataURI(str):
    """A ``data:`` URI that knows a SHA-256 (hex) of itself, so that no request works it out again.

    ``picture_sha256`` is that of the picture in it, "" where whoever encoded it did not know. Where it is known,
    ``sha256`` is made from it: a megabyte of base64 says nothing more.

    It is an ordinary string to everything else. Base64 needs no escaping in JSON, and its bytes are its characters:
    copying them is so quick that keeping them, too, would only double the memory.
    """

    __slots__ = ("picture_sha256", "sha256")

    sha256: str
    picture_sha256: str

    @classmethod
    def of_jpeg(cls, jpeg: bytes, *, sha256: str = "") -> Self:
        """Encode JPEG bytes, ``sha256`` theirs if it is known. Takes milliseconds per megabyte: call it in a thread."""
        return cls._of_ascii(b"data:image/jpeg;base64," + base64.b64encode(jpeg), picture_sha256=sha256)

    @classmethod
    def given(cls, uri: str) -> str:
        """The same address, as one of these where it is a picture in plain base64; call it in a thread.

        Anything else stays an ordinary string: what others wrote must be escaped like every other text.
        """
        return cls._of_ascii(uri.encode("ascii")) if _PLAIN.fullmatch(uri) else uri

    @classmethod
    def _of_ascii(cls, encoded: bytes, *, picture_sha256: str = "") -> Self:
        uri = cls(encoded.decode("ascii"))
        uri.sha256 = hashlib.sha256(b"picture " + picture_sha256.encode() if picture_sha256 else encoded).hexdigest()
        uri.picture_sha256 = picture_sha256
        return uri


def image_part(uri: str) -> dict[str, Any]:
    """A picture as a part of a chat message."""
    return {"type": "image_url", "image_url": {"url": uri, "detail": "high"}}
