"""The event loop of commands that have much to do at once: uvloop where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Found = TypeVar("_Found")


def run(main: Coroutine[Any, Any, _Found]) -> _Found:
    """As ``asyncio.run``, on the loop that suits this machine best."""
    from uvicorn.loops.auto import auto_loop_factory

    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(main)
