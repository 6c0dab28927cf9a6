"""Questions that a script's tools put to the outside (maps, arXiv), asked once although look-ahead runs it twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

Answers = dict[Hashable, asyncio.Task[Any]]
"""What has been asked by either run of one script."""

_answers: ContextVar[Answers | None] = ContextVar("answers", default=None)


@contextmanager
def shared(answers: Answers | None) -> Iterator[None]:
    """Within this, and in the tasks started there, the same question gets the same answer; None: each is asked."""
    before = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(before)


async def asked_once(question: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The answer to ``question``; each run gets a copy of its own. A question that failed is asked again."""
    answers = _answers.get()
    if answers is None:
        return await ask()
    task: asyncio.Task[T] | None = answers.get(question)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = answers[question] = asyncio.create_task(ask())
    # Shielded: a run that is called off leaves the question to the other one.
    return copy.deepcopy(await asyncio.shield(task))


async def called_off(answers: Answers) -> None:
    """End what is still being asked, once both runs are over."""
    for task in answers.values():
        task.cancel()
    if answers:
        await asyncio.wait(set(answers.values()))
