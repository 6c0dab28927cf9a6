"""Memory use during decompression of a zip bomb."""

from __future__ import annotations

import resource
import zlib

import pytest

from cache.backends.http import BoundedInflater
from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected

MIB = 1024 * 1024


def test_bomb_uses_no_more_memory_than_the_limit() -> None:
    engine = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(engine.compress(bytes(MIB)) for _ in range(600)) + engine.flush()
    assert len(bomb) < MIB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DocumentRejected) as rejected:
        BoundedInflater("gzip", lambda head: 24 * MIB).feed(bomb)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert rejected.value.outcome is CaptureOutcome.TOO_LARGE
    assert grown_kib < 64 * 1024
