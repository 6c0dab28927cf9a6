"""Cancellation-safe sleep for background loops."""

from __future__ import annotations

import asyncio


async def cancellable_sleep(seconds: float) -> None:
    """Sleep for ``seconds``, or raise if an earlier cancellation of this task was swallowed.

    In Python 3.11 ``asyncio.wait_for`` swallows a cancellation that arrives in the same event loop step as its result
    (https://github.com/python/cpython/issues/86296). Connection pools use it. Without this check the loop would run
    forever.

    Raises:
        asyncio.CancelledError: The task was cancelled, now or earlier.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
    await asyncio.sleep(seconds)


def first_exception(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first leaf exception of a group, at any depth."""
    exception: BaseException = group
    while isinstance(exception, BaseExceptionGroup):
        exception = exception.exceptions[0]
    return exception
