"""Settlement of a declared rubric: checks first, then each claim once its dependencies are settled.

``rubrics`` decides which leaf waits for which and what gates it. Claims are judged concurrently where possible. The
result does not depend on the order in which they finish.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Final, TypeAlias

from judges.errors import JudgeBug
from rubrics.gating import decided_by_code, gating_leaf, prerequisites_of, wait_cycle
from rubrics.rubric import Rubric
from rubrics.scoring import compatible_score, tree_score
from rubrics.tree import RubricNode, leaves_below
from rubrics.verdict import Claim, Outcome, Reason, Verdict

JudgeClaim: TypeAlias = Callable[[Claim], Awaitable[Verdict]]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of settled leaves and the number of declared leaves."""
JUDGED_LEAF: Final = ContextVar("JUDGED_LEAF", default="")
"""Id of the leaf that is judged, for log messages."""
_STARTED_AT_ONCE: Final = 10
"""Number of claims that start in one iteration of the event loop."""
_ORDERED_AT_ONCE: Final = 50
"""Number of claims whose dependencies are collected in one iteration."""


class Settler:
    """Gives each leaf of one rubric its verdict, once."""

    def __init__(
        self,
        rubric: Rubric,
        judging: JudgeClaim,
        progress: Progress | None = None,
        *,
        known: Callable[[Claim], Verdict | None] = lambda claim: None,
    ) -> None:
        """``known`` returns the verdict of a claim that code decides; None for any other claim."""
        self._rubric = rubric
        self._known = known
        self._judging = judging
        self._progress = progress
        self._settled = self._declared = 0
        self._lock = asyncio.Lock()

    async def settle(self, node: RubricNode) -> bool:
        """Settle every leaf below ``node`` and the leaves they wait for. Return whether ``node`` has a full score.

        Raises:
            JudgeBug: leaves wait for each other in a cycle.
        """
        async with self._lock:
            self._settle_checks()
            await self._settle_claims(leaves_below(node))
        return tree_score(node, lambda leaf: compatible_score(leaf.verdict).score) == 1.0

    def _settle_checks(self) -> None:
        leaves = list(self._rubric.leaves())
        for leaf in leaves:
            if leaf.verdict is None and leaf.check is not None:
                leaf.verdict = check_verdict(passed=leaf.check, expression=leaf.expression)
            elif leaf.verdict is None and leaf.claim is not None:
                leaf.verdict = self._known(leaf.claim)
        self._declared, self._settled = len(leaves), sum(leaf.verdict is not None for leaf in leaves)
        self._report()

    async def _settle_claims(self, nodes: Iterable[RubricNode]) -> None:
        waits = await self._with_dependencies(nodes)
        cycle = wait_cycle(self._rubric)
        if cycle:
            raise JudgeBug(f"cyclic dependency between nodes: {' -> '.join([*cycle, cycle[0]])}")
        settled = {leaf_id: asyncio.Event() for leaf_id in waits}

        async def settle_leaf(leaf: RubricNode, needed: Iterable[RubricNode]) -> None:
            for dependency in needed:
                if dependency.id in settled:
                    await settled[dependency.id].wait()
            blocker = gating_leaf(self._rubric, leaf)
            JUDGED_LEAF.set(leaf.id)  # in a task of its own
            leaf.verdict = await self._verdict(_claim(leaf)) if blocker is None else gated_verdict(blocker)
            settled[leaf.id].set()
            self._settled += 1
            self._report()

        async with asyncio.TaskGroup() as group:
            for number, (leaf, needed) in enumerate(waits.values(), start=1):
                group.create_task(settle_leaf(leaf, needed), name=f"leaf {leaf.id}")
                if number % _STARTED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        if any(leaf.verdict is None for leaf, _ in waits.values()):
            raise asyncio.CancelledError  # what a claim waited for was cancelled, which the task group ignores

    async def _verdict(self, claim: Claim) -> Verdict:
        # A claim that lacks a source, too, has that reason.
        return no_value_verdict() if claim.lacks_value and claim.sources != () else await self._judging(claim)

    async def _with_dependencies(self, nodes: Iterable[RubricNode]) -> dict[str, tuple[RubricNode, list[RubricNode]]]:
        """Return the unsettled claims among ``nodes`` and those they wait for, each with the leaves it waits for."""
        dependencies: dict[str, tuple[RubricNode, list[RubricNode]]] = {}
        pending = deque(nodes)
        while pending:
            leaf = pending.popleft()
            if leaf.id in dependencies or leaf.verdict is not None or decided_by_code(leaf):
                continue
            if len(dependencies) % _ORDERED_AT_ONCE == _ORDERED_AT_ONCE - 1:
                await asyncio.sleep(0)  # each leaf looks at all its siblings
            needed = [below for node in prerequisites_of(self._rubric, leaf) for below in leaves_below(node)]
            dependencies[leaf.id] = leaf, needed
            pending += needed
        return dependencies

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._settled, self._declared)


def check_verdict(*, passed: bool, expression: str = "") -> Verdict:
    """Return the verdict of a leaf that code decides. ``expression``: what it compared, with the values."""
    reasoning = f"{expression} is {'true' if passed else 'false'}" if expression else ""
    if passed:
        return Verdict(outcome=Outcome.PASSED, grounded=True, reasoning=reasoning)
    return Verdict(outcome=Outcome.FAILED, reason=Reason.CHECK_FALSE, reasoning=reasoning)


def no_value_verdict() -> Verdict:
    """Return the verdict of a claim that names a value which the answer does not give."""
    return Verdict(
        outcome=Outcome.FAILED,
        reason=Reason.NO_VALUE,
        reasoning="The answer gives no value for a field of this claim.",
    )


def gated_verdict(blocker: RubricNode) -> Verdict:
    """Return the verdict of a leaf that is skipped because of ``blocker``."""
    return Verdict(outcome=Outcome.SKIPPED, reason=Reason.GATED, blocked_by=blocker.id)


def _claim(leaf: RubricNode) -> Claim:
    if leaf.claim is None:
        raise JudgeBug(f"leaf {leaf.id!r} has no claim")
    return leaf.claim
