"""Event loop of commands: uvloop if it is installed.

uvloop is faster. It also never misses Ctrl-C: in ``asyncio.run``, a signal that arrives just as the loop becomes idle
is handled only after the next event.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

_Found = TypeVar("_Found")


def run(main: Coroutine[Any, Any, _Found]) -> _Found:
    """Run a coroutine as ``asyncio.run`` does, on uvloop if it is installed."""
    import asyncio

    from uvicorn.loops.auto import auto_loop_factory

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(main)
