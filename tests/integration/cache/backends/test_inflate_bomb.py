"""Memory use during decompression of a zip bomb."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource
import zlib

from cache.backends.http import BoundedInflater
from cache.errors import DocumentRejected

MIB = 1024 * 1024
engine = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
bomb = b"".join(engine.compress(bytes(MIB)) for _ in range(150)) + engine.flush()
assert len(bomb) < MIB
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    BoundedInflater("gzip", lambda head: 24 * MIB).feed(bomb)
except DocumentRejected as rejected:
    print(rejected.outcome.value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_bomb_uses_no_more_memory_than_the_limit() -> None:
    """Runs in a new process: how much the memory of this one grows depends on what earlier tests freed."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=120)
    outcome, grown_kib = done.stdout.split()
    assert outcome == "too_large"
    assert int(grown_kib) < 40 * 1024
