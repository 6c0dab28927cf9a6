"""Cancellation-safe sleep for background loops, and batches of concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_BATCH: Final = 100


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


@contextmanager
def unwrapped(*kinds: type[Exception]) -> Iterator[None]:
    """Raise the first exception of these kinds in an exception group without the group."""
    first: BaseException | None = None
    try:
        yield
    except* kinds as errors:
        first = first_exception(errors)
    if first is not None:
        raise first


class Batches(Generic[Item, Result]):
    """Concurrent calls that one function answers together: while it runs, the next calls are collected."""

    def __init__(self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]) -> None:
        """``work`` gets up to 100 items and returns their results in the same order."""
        self._work = work
        self._next: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, item: Item) -> Result:
        """Return the result of an item. An exception of the function is raised for all items of its batch."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._next.append((item, result))
        if self._task is None:
            self._task = asyncio.create_task(self._run_all(), name="batches")
        return await result

    async def _run_all(self) -> None:
        try:
            while self._next:
                batch, self._next = self._next[:_MAX_BATCH], self._next[_MAX_BATCH:]
                await self._run_batch(batch)
        finally:
            self._task = None

    async def _run_batch(self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            [outcome] = await asyncio.gather(self._work([item for item, _ in batch]), return_exceptions=True)
        except asyncio.CancelledError:
            for _, waiting in (*batch, *self._next):
                waiting.cancel()
            raise
        for place, (_, waiting) in enumerate(batch):
            if waiting.done():
                continue
            if isinstance(outcome, BaseException):
                waiting.set_exception(outcome)
            else:
                waiting.set_result(outcome[place])
