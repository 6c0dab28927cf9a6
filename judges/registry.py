"""What a judge is: the coroutine that writes down a task's rubric, and where it came from.

``@judge`` only marks a coroutine function; nothing is registered anywhere, so importing a judge file
changes no state outside it. ``judges.loader`` finds the marks.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from answers.submission import NAME_PATTERN
from judges.errors import JudgeNotLoadable
from rubrics.node import Strategy

if TYPE_CHECKING:
    from judges.context import JudgeContext

TASK_PATTERN: Final = NAME_PATTERN
"""A task id is a name like any other."""
MARK: Final = "__judge__"

JudgeCoroutine: TypeAlias = "Callable[[JudgeContext], Awaitable[None]]"
F = TypeVar("F", bound=Callable[..., Awaitable[None]])


class JudgeKind(StrEnum):
    """Who runs a judge file."""

    NATIVE = "native"
    """A ``@judge`` coroutine; run by ``judges.runner``."""
    MIND2WEB2 = "mind2web2"
    """A public judge script with ``evaluate_answer``; run by the compat host, never imported by the loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A task's judge. ``sha256`` (hex) of its file decides whether an old result is still current.

    ``coroutine`` is None for a public script, and for a native file that was only described, by a process of its own;
    ``function`` is then its name. ``source`` is what ``sha256`` is of, and what is run: a file that changes afterwards
    changes nothing until it is loaded again. ``path``, ``sha256`` and ``source`` are None for a judge that was declared
    in a running program and not loaded from a file.
    """

    task: str
    description: str = ""
    version: str = "1"
    strategy: Strategy = Strategy.PARALLEL
    kind: JudgeKind = JudgeKind.NATIVE
    coroutine: JudgeCoroutine | None = None
    path: Path | None = None
    sha256: str | None = None
    source: bytes | None = field(default=None, repr=False)
    function: str = "evaluate_answer"

    @property
    def name(self) -> str:
        """The coroutine's name, or ``evaluate_answer`` for a public script."""
        return self.function if self.coroutine is None else getattr(self.coroutine, "__name__", self.task)


def judge(
    *, task: str, description: str, version: str = "1", strategy: Strategy = Strategy.PARALLEL
) -> Callable[[F], F]:
    """Mark a coroutine function as the judge of ``task``; ``strategy`` is that of the rubric's root.

    Raises:
        JudgeNotLoadable: the task id is no usable name, or what is marked is not ``async def``.
    """
    if not TASK_PATTERN.fullmatch(task):
        raise JudgeNotLoadable(
            f"task id {task!r}: letters, digits and . _ - only, at most 100, not starting with one of these"
        )

    def mark(function: F) -> F:
        is_async: bool = inspect.iscoroutinefunction(function)
        if not is_async:
            raise JudgeNotLoadable(f"the judge of {task!r} must be written with `async def`")
        described = Judge(
            task=task, description=description, version=version, strategy=Strategy(strategy), coroutine=function
        )
        setattr(function, MARK, described)
        return function

    return mark


def judge_of(function: object) -> Judge:
    """The judge that ``@judge`` attached to a coroutine function.

    Raises:
        JudgeNotLoadable: nothing is attached.
    """
    found = getattr(function, MARK, None)
    if not isinstance(found, Judge):
        raise JudgeNotLoadable(f"{function!r} is not marked with @judge")
    return found
