"""Image processing in a few threads, so that concurrent requests do not hold many decoded pictures in memory.

Memory is reused while images are processed, and returned to the system afterwards. Pictures, and the model requests
that contain them, need about 1 MB each. By default, glibc raises its dynamic M_MMAP_THRESHOLD (see mallopt(3)) when
such a block is freed, and allocates later ones on the heap of the thread. There, one small block above them prevents
their release, which wastes tens of megabytes. If every block were mapped anew instead, page faults would take about a
quarter of the time that a page takes.

The pool of daemon threads is also for other calls that cannot be interrupted, such as a name lookup.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar

from PIL import Image

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Call = tuple[Future[Any], Callable[[], Any]]


class DaemonThreadPool(Executor):
    """Thread pool whose threads do not delay the end of the process.

    The interpreter joins the threads of a ``ThreadPoolExecutor`` before it exits, and ``asyncio.Runner`` joins those of
    ``asyncio.to_thread``. A call that takes long would keep the process alive after Ctrl-C.
    """

    def __init__(self, max_threads: int, *, name: str) -> None:
        self._max_threads = max_threads
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._unfinished = 0
        self._is_shut_down = False

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        future: Future[_Result] = Future()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("the thread pool was shut down")
            self._unfinished += 1
            self._calls.put((future, lambda: fn(*args, **kwargs)))
            if self._threads < min(self._unfinished, self._max_threads):
                self._threads += 1
                Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Reject further calls. Running calls are not waited for, so ``wait`` must be false."""
        if wait:
            raise ValueError("cannot wait for daemon threads: use wait=False")
        with self._lock:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            if cancel_futures:
                self._cancel_queued()
            for _ in range(self._threads):
                self._calls.put(None)

    def _cancel_queued(self) -> None:
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            if call is not None:
                call[0].cancel()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            _execute(*call)
            del call  # release the result while the thread waits for the next call
            with self._lock:
                self._unfinished -= 1


def _execute(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - reported to the caller through the future
        future.set_exception(error)
    else:
        future.set_result(result)


IDLE_S: Final = 1.0
MAX_INTERVAL_S: Final = 10.0
"""Time between two returns of freed memory while images are processed without a pause."""
BLOCK_BYTES: Final = 512 * 1024
"""Size of the blocks in which Pillow allocates pictures. Each picture resizes one of its blocks, the last one. In the
default size, 16 MiB, this would be most of the picture."""
REUSED_BLOCKS: Final = 96
"""Number of free blocks that Pillow keeps: enough for a page of 9,000 px and one of its parts."""
_MALLOC_OPTIONS: Final = {
    -3: 384 * 1024,  # M_MMAP_THRESHOLD. Setting it disables the dynamic adjustment.
    -1: 2 * 1024 * 1024,  # M_TRIM_THRESHOLD
    -8: 1,  # M_ARENA_MAX: threads reuse each other's memory. They rarely allocate at the same time, due to the GIL.
}
"""Options of mallopt(3), numbered as in malloc.h. Blocks of Pillow must be larger than the threshold of mmap."""


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
    """Returns freed memory to the system: when no job has ended for ``IDLE_S``, and at least every ``MAX_INTERVAL_S``.

    Without glibc, only the memory of Pillow is returned.
    """

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None)
        self._malloc_trim: Any = getattr(libc, "malloc_trim", None)
        if self._malloc_trim is not None:
            for option, value in _MALLOC_OPTIONS.items():
                libc.mallopt(option, value)
        self._pillow: Any = vars(Image)["core"]
        self._pillow.set_block_size(BLOCK_BYTES)
        self._pillow.set_blocks_max(REUSED_BLOCKS)
        self._ended_jobs = 0
        self._trimmed_at = 0.0

    def trim_later(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record the end of a job. A loop that is closed earlier does not trim."""
        self._ended_jobs += 1
        loop.call_later(IDLE_S, self._trim_if_due, self._ended_jobs)

    def _trim_if_due(self, ended_jobs: int) -> None:
        now = time.monotonic()
        if ended_jobs == self._ended_jobs or now - self._trimmed_at >= MAX_INTERVAL_S:
            self._trimmed_at = now
            _pool().submit(self.trim)

    def trim(self) -> None:
        """Return freed memory, and the blocks of Pillow. Takes about 10 ms."""
        self._pillow.clear_cache()
        if self._malloc_trim is not None:
            self._malloc_trim(0)


@cache
def _trimmer() -> _Trimmer:
    return _Trimmer()
