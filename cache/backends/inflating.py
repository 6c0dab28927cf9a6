"""Size limit of the bodies that the service reads from outside, counted while they are read and decompressed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from cache.backends.documents import SNIFFED_BYTES
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected

MAX_API_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a response of an API: a model server, the index of the web archive, maps, arXiv."""
ACCEPT_ENCODING = "gzip, identity"
_STEP_BYTES = 64 * 1024
_MEMBER_BYTES = 4 * 1024  # what a further gzip member counts: a member may be empty, and each one takes time
_GZIP_START = b"\x1f"  # first byte of a gzip member; a chunk may contain only this byte of it
# zlib's window argument per encoding. The flag 32 detects gzip and zlib headers.
_GZIP = zlib.MAX_WBITS | 16
_WINDOW_BITS = {"identity": None, "gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS | 32}


class BoundedInflater:
    """Decompresses a body chunk by chunk, up to the limit for its content type.

    The limit is for the compressed and for the decompressed size. At most one step (64 KiB) is decompressed beyond it.
    """

    def __init__(self, encoding: str, limit_for: Callable[[bytes], int]) -> None:
        """Create an inflater.

        Args:
            encoding: Value of the Content-Encoding header.
            limit_for: Returns the maximum size for content that starts with the given bytes.

        Raises:
            DocumentRejected: the encoding is not identity, gzip or deflate.
        """
        names = [name.strip().lower() for name in encoding.split(",") if name.strip()] or ["identity"]
        if len(names) > 1 or names[0] not in _WINDOW_BITS:
            raise DocumentRejected(CaptureOutcome.UNSUPPORTED, f"unsupported content encoding {encoding}")
        self._window_bits = _WINDOW_BITS[names[0]]
        self._decompressor = None if self._window_bits is None else zlib.decompressobj(self._window_bits)
        self._limit_for = limit_for
        self._limit: int | None = None
        self._received = 0
        self._content = bytearray()

    @property
    def is_complete(self) -> bool:
        """Whether the compressed stream is complete."""
        return self._decompressor is None or self._decompressor.eof or not self._content

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def feed(self, chunk: bytes) -> None:
        """Decompress the next chunk.

        Raises:
            DocumentRejected: the content exceeds its limit or is damaged.
        """
        self._receive(len(chunk))
        if self._decompressor is None or self._window_bits is None:
            self._append(chunk)
            return
        while chunk:
            if self._decompressor.eof:
                # A gzip member has ended. Another member counts towards the same limit; anything else is padding.
                if chunk[:1] != _GZIP_START:
                    return
                self._receive(_MEMBER_BYTES)
                self._decompressor = zlib.decompressobj(self._window_bits)
            try:
                self._append(self._decompressor.decompress(chunk, _STEP_BYTES))
            except zlib.error as damage:
                raise DocumentRejected(CaptureOutcome.DAMAGED, f"damaged compression: {damage}") from damage
            chunk = self._decompressor.unused_data if self._decompressor.eof else self._decompressor.unconsumed_tail

    def _receive(self, size: int) -> None:
        self._received += size
        self._check(self._received)

    def _append(self, content: bytes) -> None:
        self._content += content
        self._check(len(self._content))

    def _check(self, size: int) -> None:
        limit = self._limit
        if limit is None:
            limit = self._limit_for(bytes(self._content[:SNIFFED_BYTES]))
            if len(self._content) >= SNIFFED_BYTES:
                self._limit = limit
        if size > limit:
            raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {limit} bytes of content")


def limited_inflater(encoding: str, max_bytes: int) -> BoundedInflater:
    """Return an inflater with the same limit for all content. It keeps a body with an unknown encoding as it is."""
    try:
        return BoundedInflater(encoding, lambda head: max_bytes)
    except DocumentRejected:
        return BoundedInflater("", lambda head: max_bytes)
