"""Memory limiter: kills a browser process that exceeds the limit, and no other process."""

from __future__ import annotations

import asyncio
import os
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


async def _start_process(size: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", ALLOCATE, str(size))


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


async def test_processes_are_not_monitored_without_open_page() -> None:
    limiter = MemoryLimiter(os.getpid(), max_bytes=120 * MIB)
    async with limiter.monitor():
        pass
    large = await _start_process(200 * MIB)
    try:
        await asyncio.sleep(0.8)
        assert (large.returncode, limiter.kills) == (None, 0)
    finally:
        large.kill()
        await large.wait()


async def test_exited_browser_is_not_an_error() -> None:
    ended = await _start_process(MIB)
    ended.kill()
    await ended.wait()
    limiter = MemoryLimiter(ended.pid)
    async with limiter.monitor():
        await asyncio.sleep(0.05)
    assert limiter.kills == 0
