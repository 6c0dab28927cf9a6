"""Thread pool of daemon threads for calls that cannot be interrupted, such as a name lookup."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

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
