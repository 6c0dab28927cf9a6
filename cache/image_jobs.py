"""Image processing in a few threads, so that concurrent requests do not hold many decoded pictures in memory.

Memory that was freed is returned to the system. Pictures, and the model requests that contain them, need about 1 MB
each. When such a block is freed, glibc raises its dynamic M_MMAP_THRESHOLD (see mallopt(3)) and allocates later ones on
the heap. There, one small block above them prevents their release, which wastes tens of megabytes.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final, ParamSpec, TypeVar

from PIL import Image

from cache.daemon_threads import DaemonThreadPool

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
TRIM_INTERVAL_S: Final = 1.0
REUSED_BLOCKS: Final = 4
"""Pillow allocates pictures in blocks of 16 MiB. These are enough for a page of 12,000 px and one of its parts."""
LARGE_BYTES: Final = 256 * 1024
"""Blocks of at least this size are mapped separately and returned to the system as soon as they are freed."""
_M_MMAP_THRESHOLD: Final = -3
"""Value in malloc.h. Setting the threshold disables its dynamic adjustment."""


async def run_image_job(
    fn: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Return the result of a function that decodes or encodes images, run in one of ``max_image_jobs`` threads.

    A decoded page has about 50 MB. Half of the processors stay free for the event loop and other work.
    """
    trimmer = _trimmer()
    try:
        return await asyncio.wrap_future(_pool().submit(fn, *args, **kwargs))
    finally:
        trimmer.trim_later(asyncio.get_running_loop())


def return_freed_memory() -> None:
    """Return freed memory to the system, in the background."""
    _pool().submit(_trimmer().trim)


def max_image_jobs() -> int:
    """Return the number of image jobs that run at a time in this process."""
    return max(1, (os.cpu_count() or 1) // 2)


@cache
def _pool() -> DaemonThreadPool:
    return DaemonThreadPool(max_image_jobs(), name="image")


class _Trimmer:
    """Returns freed memory to the system: large blocks at once, all others ``TRIM_INTERVAL_S`` after a job.

    Without glibc, only the memory of Pillow is returned.

    Until then, Pillow reuses the blocks of the last pictures: mapping new ones takes as long as decoding.
    """

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None)
        self._malloc_trim: Any = getattr(libc, "malloc_trim", None)
        if self._malloc_trim is not None:
            libc.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        self._due_at = 0.0
        self._pillow: Any = vars(Image)["core"]
        self._pillow.set_blocks_max(REUSED_BLOCKS)

    def trim_later(self, loop: asyncio.AbstractEventLoop) -> None:
        """Trim once after the interval, also after several jobs. A loop that is closed earlier does not trim."""
        now = time.monotonic()
        if now >= self._due_at:
            self._due_at = now + TRIM_INTERVAL_S
            loop.call_later(TRIM_INTERVAL_S, lambda: _pool().submit(self.trim))

    def trim(self) -> None:
        """Return freed memory, and the blocks of Pillow. Takes about 10 ms."""
        self._pillow.clear_cache()
        if self._malloc_trim is not None:
            self._malloc_trim(0)


@cache
def _trimmer() -> _Trimmer:
    return _Trimmer()
