"""Leaves of a result as a mutation test compares them: request, outcome, and the extracted values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cache.urls import canonical_key
from judges.analysis.overrides import judged_leaves, judged_tree
from rubrics.verdict import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLeaf:
    """Leaf of one run. ``claim`` is None if code decided the leaf.

    ``sources`` are keys of pages; None for a claim about the answer alone.
    """

    key: str
    claim: str | None
    sources: tuple[str, ...] | None
    instruction: str | None
    outcome: Outcome
    reason: str | None
    desc: str = ""
    check: bool | None = None
    """Result of a check by code, also if the leaf was then skipped; None if unknown."""
    blocked_by: str | None = None
    """Id of the failed leaf or group because of which this leaf was skipped."""

    @property
    def question(self) -> tuple[object, ...]:
        """Return what the judge model is asked: claim, sources and instruction."""
        return self.claim, None if self.sources is None else frozenset(self.sources), self.instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """One run: its leaves by key, the values extracted from the answer, the task text, and the whole result."""

    leaves: Mapping[str, ObservedLeaf]
    values: tuple[str, ...]
    task: str
    result: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def pages(self) -> frozenset[str]:
        """Return the keys of the pages among the extracted values."""
        return frozenset(canonical_key(value) for value in self.values if "://" in value or value.startswith("www."))

    @property
    def passed(self) -> tuple[ObservedLeaf, ...]:
        """Return the leaves whose claim passed. Only these can be tested."""
        return tuple(leaf for leaf in self.leaves.values() if leaf.outcome is Outcome.PASSED and leaf.claim is not None)

    @property
    def not_judged(self) -> tuple[str, ...]:
        return tuple(leaf.key for leaf in self.leaves.values() if leaf.outcome is Outcome.NOT_JUDGED)


def observed_run(result: Mapping[str, Any]) -> ObservedRun:
    """Read a run from the JSON of a result, or from a ``get_summary()``."""
    tree = judged_tree(result)
    return ObservedRun(
        leaves={key: _leaf(key, node.data) for key, node in judged_leaves(result).items()},
        values=tuple(_texts([part.get("info") for part in result.get("eval_breakdown") or ()])),
        task="" if tree is None else str(tree.data.get("desc") or ""),
        result=result,
    )


def _leaf(key: str, data: Mapping[str, Any]) -> ObservedLeaf:
    sources = data.get("sources")
    outcome = Outcome(data.get("outcome") or Outcome.UNDECIDED)
    check = data.get("check")
    if check is None and data.get("claim") is None and outcome in (Outcome.PASSED, Outcome.FAILED):
        check = outcome is Outcome.PASSED
    return ObservedLeaf(
        key=key,
        claim=data.get("claim"),
        sources=None if sources is None else tuple(canonical_key(str(url)) for url in sources),
        instruction=data.get("instruction"),
        outcome=outcome,
        reason=data.get("reason"),
        desc=str(data.get("desc") or ""),
        check=check,
        blocked_by=data.get("blocked_by"),
    )


def _texts(value: object) -> Iterator[str]:
    """Yield all strings and numbers in a JSON value."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield f"{value:g}" if isinstance(value, float) else str(value)
