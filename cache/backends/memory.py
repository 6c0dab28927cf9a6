"""Memory limit for browser processes: a page of a few hundred bytes can allocate any amount of memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import structlog

_log = structlog.get_logger(__name__)

MAX_PROCESS_BYTES = 1200 * 1024 * 1024
_INTERVAL_S = 0.5


class MemoryLimiter:
    """Monitors the processes of one browser while it has open pages. ``kills`` counts the killed processes."""

    def __init__(self, browser_pid: int, *, max_bytes: int = MAX_PROCESS_BYTES) -> None:
        self._browser_pid = browser_pid
        self._max_bytes = max_bytes
        self._callers = 0
        self._task: asyncio.Task[None] | None = None
        self.kills = 0

    @asynccontextmanager
    async def monitor(self) -> AsyncIterator[None]:
        """Monitor the processes as long as at least one caller is in this context."""
        self._callers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="memory warden")
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers and self._task is not None:
                task, self._task = self._task, None
                task.cancel()
                await asyncio.wait([task])

    async def _watch(self) -> None:
        while True:
            self.kills += await asyncio.to_thread(self._kill_oversized)
            await asyncio.sleep(_INTERVAL_S)

    def _kill_oversized(self) -> int:
        try:
            processes = psutil.Process(self._browser_pid).children(recursive=True)
        except psutil.Error:
            return 0
        killed = 0
        for process in processes:
            try:
                size = process.memory_info().rss
                if size > self._max_bytes:
                    process.kill()
                    killed += 1
                    _log.warning("browser_process_killed", pid=process.pid, bytes=size)
            except psutil.Error:
                continue
        return killed
