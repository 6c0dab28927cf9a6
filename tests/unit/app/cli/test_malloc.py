"""Memory that the allocator keeps after freeing large blocks."""

from __future__ import annotations

import subprocess
import sys

import pytest

_RISES = """
import sys
from pathlib import Path
from app.cli.malloc import set_mmap_threshold

def resident():
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

if sys.argv[1] == "given back":
    assert set_mmap_threshold()
bytes(8_000_000)  # the first one that is freed teaches the allocator to keep blocks of this size
before = resident()
kept, small = [], []
for _ in range(40):
    kept.append(b"x" * 2_000_000)
    small.append([bytes(2000) for _ in range(20)])  # lives on above it
kept.clear()
print((resident() - before) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="requires malloc of Linux")
def test_freed_large_blocks_are_returned_although_small_ones_are_in_use():
    def growth_mib(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", _RISES, how], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert growth_mib("given back") < 20 < 60 < growth_mib("kept")
