"""Mutation test: runs a judge on the original answer, then on each mutation in turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from judges.analysis.mutation.expectation import Expectation
from judges.analysis.mutation.leaves import ObservedRun, observed_run
from judges.analysis.mutation.mutations import Mutation, mutations_of
from judges.analysis.mutation.report import MutationResult, compare_runs

JudgeText: TypeAlias = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Judges the text of an answer and returns the result, or a ``get_summary()``."""


class MutationTest:
    """Mutation test of one judge on one answer. ``judge`` is called for the answer and for each mutation."""

    def __init__(self, judge: JudgeText, answer: str) -> None:
        self._judge = judge
        self._answer = answer

    async def base(self) -> ObservedRun:
        """Return the run on the original answer."""
        return observed_run(await self._judge(self._answer))

    async def run(
        self,
        base: ObservedRun,
        pages: Mapping[str, str],
        *,
        seed: int,
        per_kind: int | None,
        before: Callable[[int, int, Mutation], None] = lambda done, total, mutation: None,
    ) -> tuple[MutationResult, ...]:
        """Run the mutations. ``pages``: texts of the cited pages by URL. ``before`` is called before each mutation."""
        expectation = Expectation(self._answer, base, pages)
        mutations = mutations_of(
            self._answer, base, pages, seed=seed, per_kind=per_kind, tells=lambda change: bool(expectation.of(change))
        )
        runs = []
        for done, mutation in enumerate(mutations):
            before(done, len(mutations), mutation)
            runs.append(compare_runs(mutation, base, observed_run(await self._judge(mutation.text)), expectation))
        return tuple(runs)
