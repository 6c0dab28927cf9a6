"""Event loop of commands: uvloop.

uvloop is faster. It also never misses Ctrl-C: in ``asyncio.run``, a signal that arrives just as the loop becomes idle
is handled only after the next event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import uvloop

from app.console.errors import Interrupted
from app.interruption import INTERRUPTION, SIGNALS
from cache.scratch import remove_all

_Found = TypeVar("_Found")


@contextmanager
def resumable(saved: str) -> Iterator[None]:
    """Say what is saved if a signal interrupts the block, also if the process has to be ended.

    Raises:
        Interrupted: A signal interrupted the block.
    """
    INTERRUPTION.message = str(Interrupted(saved))
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(saved) from None


def run(main: Coroutine[Any, Any, _Found]) -> _Found:
    """Run a coroutine as ``asyncio.run`` does, on uvloop. Ctrl-C and SIGTERM cancel it.

    Raises:
        KeyboardInterrupt: A signal cancelled it.
    """
    INTERRUPTION.at_forced_exit(remove_all)

    async def interruptible() -> _Found:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def on_signal(signum: int) -> None:
            if INTERRUPTION.begin(signum) and task is not None:
                task.cancel()

        for signum in SIGNALS if INTERRUPTION.is_installed else ():
            loop.add_signal_handler(signum, on_signal, signum)
        return await main

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(interruptible())
    except asyncio.CancelledError:
        if INTERRUPTION.signal_number is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        if INTERRUPTION.is_installed:
            INTERRUPTION.install()  # the loop has replaced its handlers
