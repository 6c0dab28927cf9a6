from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from cache.image_jobs import DaemonThreadPool


def test_threads_are_daemons_and_end_after_shutdown() -> None:
    pool = DaemonThreadPool(1, name="test")
    thread = pool.submit(threading.current_thread).result(240)
    assert thread.daemon
    pool.shutdown()
    thread.join(240)
    assert not thread.is_alive()
    with pytest.raises(RuntimeError):
        pool.submit(threading.get_ident)


def test_queued_calls_can_be_cancelled() -> None:
    pool = DaemonThreadPool(1, name="test")
    began, free = threading.Event(), threading.Event()

    def wait() -> bool:
        began.set()
        return free.wait(240)

    running = pool.submit(wait)
    assert began.wait(240)
    queued = pool.submit(threading.get_ident)
    pool.shutdown(cancel_futures=True)
    free.set()
    assert running.result(240)
    with pytest.raises(CancelledError):
        queued.result(240)
