"""Time and memory to check a bundle of one gigabyte."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.features.bundles.bag import BagWriter

FILES = 4_096
FILE_BYTES = 256 * 1024
MIB = 1024 * 1024
_CHECK = """
import sys
from pathlib import Path
from app.features.bundles.verifying import verify
found = verify(Path(sys.argv[1]))
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(found.valid, peak)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One check of the bundle: wall and processor seconds, and peak memory."""

    bytes: int
    wall_s: float
    cpu_s: float
    peak_mib: float


def check() -> Checked:
    """Create and check a bundle of one gigabyte in a separate process.

    Raises:
        RuntimeError: The check failed.
    """
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        bundle = Path(folder) / "bundle.zip"
        _make(bundle)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-c", _CHECK, str(bundle)], capture_output=True, text=True, timeout=300, check=False
        )
        wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        sound, _, peak_kib = ended.stdout.partition(" ")
        if sound != "True":
            raise RuntimeError(f"the bundle was not found sound: {ended.stdout}{ended.stderr}")
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Checked(bytes=bundle.stat().st_size, wall_s=wall_s, cpu_s=cpu_s, peak_mib=int(peak_kib) / 1024)


def _make(bundle: Path) -> None:
    block = os.urandom(MIB)

    def content(number: int) -> Iterator[bytes]:
        yield number.to_bytes(8)
        yield block[: FILE_BYTES - 8]

    with bundle.open("w+b") as file:
        bag = BagWriter(file, "assay-bench")
        for number in range(FILES):
            bag.add(f"evidence/{number:064x}.jpg", content(number))
        bag.finish({})
