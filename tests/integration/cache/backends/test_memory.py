"""A process that grows beyond reason is ended; its siblings are not."""

from __future__ import annotations

import asyncio
import os
import sys

from cache.backends.browser_process import MemoryLimiter

MIB = 1024 * 1024
HOARD = (
    "import sys, time; hoard = bytearray(int(sys.argv[1])); hoard[::4096] = b'x' * len(hoard[::4096]); time.sleep(60)"
)


async def _process(size: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", HOARD, str(size))


async def test_only_the_process_that_grows_too_large_is_killed() -> None:
    small, large = await _process(MIB), await _process(200 * MIB)
    warden = MemoryLimiter(os.getpid(), max_bytes=120 * MIB)
    try:
        async with warden.monitor(), warden.monitor():
            assert await asyncio.wait_for(large.wait(), 40) == -9
        assert warden.kills == 1
        assert small.returncode is None
    finally:
        small.kill()
        await small.wait()


async def test_nothing_is_watched_while_no_page_is_open() -> None:
    warden = MemoryLimiter(os.getpid(), max_bytes=120 * MIB)
    async with warden.monitor():
        pass
    large = await _process(200 * MIB)
    try:
        await asyncio.sleep(0.8)
        assert (large.returncode, warden.kills) == (None, 0)
    finally:
        large.kill()
        await large.wait()


async def test_a_browser_that_is_gone_is_no_fault() -> None:
    ended = await _process(MIB)
    ended.kill()
    await ended.wait()
    warden = MemoryLimiter(ended.pid)
    async with warden.monitor():
        await asyncio.sleep(0.05)
    assert warden.kills == 0
