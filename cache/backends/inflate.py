"""Decompression of response bodies with a limit on the output size."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from cache.backends.documents import SNIFFED_BYTES
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected

ACCEPT_ENCODING = "gzip, identity"
_STEP_BYTES = 64 * 1024
_GZIP_START = b"\x1f"  # first byte of a gzip member; a chunk may contain only this byte of it
# zlib's window argument per encoding. The flag 32 detects gzip and zlib headers.
_GZIP = zlib.MAX_WBITS | 16
_WINDOWS = {"identity": None, "gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS | 32}


class BoundedInflater:
    """Decompresses a body chunk by chunk, up to the limit for its content type.

    At most one step (64 KiB) is decompressed beyond the limit.
    """

    def __init__(self, encoding: str, limit_of: Callable[[bytes], int]) -> None:
        """Create an inflater.

        Args:
            encoding: Value of the Content-Encoding header.
            limit_of: Returns the maximum size for content that starts with the given bytes.

        Raises:
            DocumentRejected: the encoding is not identity, gzip or deflate.
        """
        names = [name.strip().lower() for name in encoding.split(",") if name.strip()] or ["identity"]
        if len(names) > 1 or names[0] not in _WINDOWS:
            raise DocumentRejected(CaptureOutcome.UNSUPPORTED, f"unsupported content encoding {encoding}")
        self._window = _WINDOWS[names[0]]
        self._engine = None if self._window is None else zlib.decompressobj(self._window)
        self._limit_of = limit_of
        self._limit: int | None = None
        self._content = bytearray()

    @property
    def is_whole(self) -> bool:
        """Whether the compressed stream is complete."""
        return self._engine is None or self._engine.eof or not self._content

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def feed(self, wire: bytes) -> None:
        """Decompress the next chunk.

        Raises:
            DocumentRejected: the content exceeds its limit or is damaged.
        """
        if self._engine is None or self._window is None:
            self._append(wire)
            return
        while wire:
            if self._engine.eof:
                # A gzip member has ended. Another member counts towards the same limit; anything else is padding.
                if wire[:1] != _GZIP_START:
                    return
                self._engine = zlib.decompressobj(self._window)
            try:
                self._append(self._engine.decompress(wire, _STEP_BYTES))
            except zlib.error as damage:
                raise DocumentRejected(CaptureOutcome.DAMAGED, f"damaged compression: {damage}") from damage
            wire = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    def _append(self, content: bytes) -> None:
        self._content += content
        if self._limit is None and len(self._content) >= SNIFFED_BYTES:
            self._limit = self._limit_of(bytes(self._content[:SNIFFED_BYTES]))
        if self._limit is not None and len(self._content) > self._limit:
            raise DocumentRejected(CaptureOutcome.TOO_LARGE, f"more than {self._limit} bytes of content")
