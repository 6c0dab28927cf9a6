"""Judges and the ``@judge`` decorator.

``@judge`` only marks a coroutine function. There is no global registry, so importing a task file changes no state
outside of it. ``judges.loader`` finds the marks.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import ValidationError

from answers.submission import NAME_PATTERN
from cache.capture import EvidencePolicy
from judges.errors import JudgeNotLoadable
from judges.forbidden_sources import ForbiddenSource
from rubrics.tree import Strategy

if TYPE_CHECKING:
    from judges.context import JudgeContext

TASK_PATTERN: Final = NAME_PATTERN
"""Pattern of task ids, the same as for all names."""
MARK: Final = "__judge__"

JudgeCoroutine: TypeAlias = "Callable[[JudgeContext], Awaitable[None]]"
F = TypeVar("F", bound=Callable[..., Awaitable[None]])


class JudgeKind(StrEnum):
    """Kind of a task file."""

    NATIVE = "native"
    """``@judge`` coroutine; run by ``judges.runner``."""
    MIND2WEB2 = "mind2web2"
    """Public task script with ``evaluate_answer``; run by the mind2web2 host, never imported by the loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judge of one task.

    Attributes:
        coroutine: None for a public script, and for a native file that was described in another process.
        function: Name of the function if ``coroutine`` is None.
        source: Source code that is run. Later changes of the file have no effect until it is loaded again.
        sha256: Hex digest of ``source``. A stored result is current only if its digest is equal.
        path: File of the judge. ``path``, ``sha256`` and ``source`` are None if the judge was not loaded from a file.
        forbidden_sources: Sources that do not count for the task, besides those of the settings.
        supplied_evidence: The most that answers may rest on pages that the agent supplied. It is also the policy of
            submissions that name none. None: no limit, and ``captured`` if a submission names none.
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
    forbidden_sources: tuple[ForbiddenSource, ...] = ()
    supplied_evidence: EvidencePolicy | None = None

    def evidence_policy(self, requested: EvidencePolicy | None) -> EvidencePolicy:
        """Return the policy for an answer whose submission requested one, or none."""
        return (requested or self.supplied_evidence or EvidencePolicy.CAPTURED).limited_by(self.supplied_evidence)

    @property
    def name(self) -> str:
        """The coroutine's name, or ``evaluate_answer`` for a public script."""
        return self.function if self.coroutine is None else getattr(self.coroutine, "__name__", self.task)


def judge(
    *,
    task: str,
    description: str,
    version: str = "1",
    strategy: Strategy = Strategy.PARALLEL,
    forbidden_sources: Iterable[Mapping[str, Any]] = (),
    supplied_evidence: Literal["captured", "fallback", "supplied"] | None = None,
) -> Callable[[F], F]:
    """Mark a coroutine function as the judge of ``task``. ``strategy`` applies to the root of the rubric.

    ``forbidden_sources`` are mappings with the keys of ``ForbiddenSource``, as in a task file in YAML.
    ``supplied_evidence`` limits the use of pages that agents supply.

    Raises:
        JudgeNotLoadable: the task id, a forbidden source or a policy is invalid, or the function is not ``async def``.
    """
    try:
        forbidden = tuple(ForbiddenSource.model_validate(dict(each)) for each in forbidden_sources)
        policy = None if supplied_evidence is None else EvidencePolicy(supplied_evidence)
    except (ValidationError, TypeError, ValueError) as error:
        raise JudgeNotLoadable(
            f"the judge of {task!r} has an invalid entry in forbidden_sources or supplied_evidence: {error}"
        ) from error
    if not TASK_PATTERN.fullmatch(task):
        raise JudgeNotLoadable(
            f"Invalid task id {task!r}: use letters, digits, '.', '_' or '-' (max 100 characters). "
            "The first character must be a letter or a digit."
        )

    def mark(function: F) -> F:
        is_async: bool = inspect.iscoroutinefunction(function)
        if not is_async:
            raise JudgeNotLoadable(f"the judge of {task!r} must be defined with `async def`")
        described = Judge(
            task=task,
            description=description,
            version=version,
            strategy=Strategy(strategy),
            coroutine=function,
            forbidden_sources=forbidden,
            supplied_evidence=policy,
        )
        setattr(function, MARK, described)
        return function

    return mark
