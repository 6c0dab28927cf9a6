"""Decompression with a limit on the output size."""

from __future__ import annotations

import gzip
import zlib

import pytest

from cache.backends.inflating import BoundedInflater
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected

MIB = 1024 * 1024


def _inflate(encoding: str, wire: bytes, limit: int = MIB, piece: int = 1000) -> bytes:
    inflater = BoundedInflater(encoding, lambda head: limit)
    for start in range(0, len(wire), piece):
        inflater.feed(wire[start : start + piece])
    return inflater.content


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("", bytes), ("gzip", gzip.compress), ("Deflate", zlib.compress)],
)
@pytest.mark.parametrize("content", [b"", b"x", b"some text " * 5000])
def test_content_is_decompressed(encoding: str, pack: type[bytes], content: bytes) -> None:
    assert _inflate(encoding, pack(content)) == content


@pytest.mark.parametrize("padding", [b"\0" * 20, b"junk behind it"])
def test_bytes_after_the_last_member_are_ignored(padding: bytes) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + padding
    for step in (1, 7, len(packed)):
        inflater = BoundedInflater("gzip", lambda head: MIB)
        for start in range(0, len(packed), step):
            inflater.feed(packed[start : start + step])
        assert (inflater.content, inflater.is_complete) == (b"one two", True)


def test_truncated_content_is_not_whole() -> None:
    packed = gzip.compress(b"some text " * 500)
    inflater = BoundedInflater("gzip", lambda head: MIB)
    inflater.feed(packed[:-12])
    assert inflater.content
    assert not inflater.is_complete


def test_several_members_share_one_limit() -> None:
    with pytest.raises(DocumentRejected) as rejected:
        _inflate("gzip", gzip.compress(b"x" * 200_000) * 6)
    assert rejected.value.outcome is CaptureOutcome.TOO_LARGE


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip"])
def test_unsupported_encoding_is_rejected(encoding: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        BoundedInflater(encoding, lambda head: MIB)
    assert rejected.value.outcome is CaptureOutcome.UNSUPPORTED


def test_damaged_compression_is_rejected() -> None:
    with pytest.raises(DocumentRejected) as rejected:
        _inflate("gzip", b"this is not gzip at all")
    assert rejected.value.outcome is CaptureOutcome.DAMAGED
