"""Deduplication of tool requests (maps, arXiv) between the two runs of a script with look-ahead."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

Answers = dict[Hashable, asyncio.Task[Any]]
"""Requests by either run of one script."""

_answers: ContextVar[Answers | None] = ContextVar("answers", default=None)


@contextmanager
def share_replies(answers: Answers | None) -> Iterator[None]:
    """Share replies inside the block and in tasks started there. With None, every request is sent."""
    before = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(before)


async def request_once(question: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the reply to ``question``, as a copy for each run. Failed requests are retried."""
    answers = _answers.get()
    if answers is None:
        return await ask()
    task: asyncio.Task[T] | None = answers.get(question)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = answers[question] = asyncio.create_task(ask())
    # Shielded: if this run is cancelled, the other one may still need the reply.
    return copy.deepcopy(await asyncio.shield(task))


async def cancel_pending(answers: Answers) -> None:
    """Cancel pending requests after both runs."""
    for task in answers.values():
        task.cancel()
    if answers:
        await asyncio.wait(set(answers.values()))
