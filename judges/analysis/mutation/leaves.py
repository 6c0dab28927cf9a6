"""The leaves of a result as a mutation test looks at them: what was asked, what came of it, what was read before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cache.urls import canonical_key
from judges.analysis.overrides import judged_leaves, judged_tree
from rubrics.verdict import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLeaf:
    """One leaf of one run. ``sources`` by key, None for a claim on the answer alone; ``claim`` None: code decided."""

    key: str
    claim: str | None
    sources: tuple[str, ...] | None
    instruction: str | None
    outcome: Outcome
    reason: str | None
    desc: str = ""
    check: bool | None = None
    """What code decided, also for a leaf that was then skipped; None where that is not known."""
    blocked_by: str | None = None
    """The id of the leaf or group that failed, so that this leaf was skipped."""

    @property
    def question(self) -> tuple[object, ...]:
        """What the judge was asked."""
        return self.claim, None if self.sources is None else frozenset(self.sources), self.instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run: its leaves by key, what it read out of the answer, and the task as every judge was shown it."""

    leaves: Mapping[str, SeenLeaf]
    values: tuple[str, ...]
    task: str

    @property
    def pages(self) -> frozenset[str]:
        """The keys of the pages that were read out of the answer as its sources."""
        return frozenset(canonical_key(value) for value in self.values if "://" in value or value.startswith("www."))

    @property
    def passed(self) -> tuple[SeenLeaf, ...]:
        """The leaves with a claim that passed: only these can be watched."""
        return tuple(leaf for leaf in self.leaves.values() if leaf.outcome is Outcome.PASSED and leaf.claim is not None)

    @property
    def not_judged(self) -> tuple[str, ...]:
        return tuple(leaf.key for leaf in self.leaves.values() if leaf.outcome is Outcome.NOT_JUDGED)


def seen(result: Mapping[str, Any]) -> Seen:
    """What a result shows; ``result`` is its JSON, or a ``get_summary()``."""
    tree = judged_tree(result)
    return Seen(
        leaves={key: _leaf(key, node.data) for key, node in judged_leaves(result).items()},
        values=tuple(_texts([part.get("info") for part in result.get("eval_breakdown") or ()])),
        task="" if tree is None else str(tree.data.get("desc") or ""),
    )


def _leaf(key: str, data: Mapping[str, Any]) -> SeenLeaf:
    sources = data.get("sources")
    outcome = Outcome(data.get("outcome") or Outcome.UNDECIDED)
    check = data.get("check")
    if check is None and data.get("claim") is None and outcome in (Outcome.PASSED, Outcome.FAILED):
        check = outcome is Outcome.PASSED
    return SeenLeaf(
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
    """Every text and number in JSON values."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield f"{value:g}" if isinstance(value, float) else str(value)
