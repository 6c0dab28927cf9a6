"""Memory limiter: kills a browser process that exceeds the limit, and no other process."""

from __future__ import annotations

import asyncio
import sys

from cache.backends.browser_process import MemoryLimiter

MIB = 1024 * 1024
ALLOCATE = (
    "import sys, time; hoard = bytearray(int(sys.argv[1])); hoard[::4096] = b'x' * len(hoard[::4096]); time.sleep(60)"
)

OWNER = """
import subprocess, sys
small, large = (subprocess.Popen([sys.executable, "-c", sys.argv[1], size]) for size in sys.argv[2:])
print(large.wait(), small.poll(), flush=True)
small.kill()
"""


async def test_only_process_over_limit_is_killed() -> None:
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, ALLOCATE, str(MIB), str(200 * MIB)), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    limiter = MemoryLimiter(owner.pid, max_bytes=120 * MIB)
    async with limiter.monitor(), limiter.monitor():
        assert await asyncio.wait_for(owner.stdout.readline(), 240) == b"-9 None\n"
    assert limiter.kills == 1
    assert await owner.wait() == 0
