"""Ranking of verdicts for review: doubt multiplied by the share of the score at stake. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.dashboard.effects import Effect, effects
from app.dashboard.leaf_overrides import LeafOverride, result_overrides
from app.dashboard.outline import Node, Outline, outline
from app.dashboard.wording import signal_words
from rubrics.verdict import Outcome

_ORDERS = "orders_in_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulLeaf:
    """Leaf with a doubtful verdict.

    ``doubt`` and ``worth`` (the share of the score at stake) are in 0..1, ``reasons`` explains the doubt in words, and
    ``override`` is the override in force.
    """

    result_id: str
    agent: str
    task_id: str
    answer_name: str
    leaf: Node
    doubt: float
    worth: float
    reasons: Sequence[str]
    override: LeafOverride | None

    @property
    def rank(self) -> float:
        return self.doubt * self.worth


def doubtful_leaves(result: Mapping[str, Any]) -> list[DoubtfulLeaf]:
    """Return the leaves of a result with a doubtful verdict, highest rank first."""
    tree: Outline = outline(result)
    worth: Mapping[str, Effect] = effects(tree)
    overrides = result_overrides(result).in_force
    found = []
    for leaf in tree.leaves:
        reasons = list(_reasons(leaf))
        if not reasons:
            continue
        found.append(
            DoubtfulLeaf(
                result_id=str(result["id"]),
                agent=str(result["agent_name"]),
                task_id=str(result["task_id"]),
                answer_name=str(result["answer_name"]),
                leaf=leaf,
                doubt=max(doubt for doubt, _ in reasons),
                worth=worth[leaf.key].worth,
                reasons=[reason for _, reason in reasons],
                override=overrides.get(leaf.key),
            )
        )
    return sorted(found, key=lambda one: -one.rank)


def _reasons(leaf: Node) -> Iterable[tuple[float, str]]:
    """Yield (doubt, reason) pairs. Doubt is from 0 (none) to 1 (nothing is known)."""
    votes = [vote.get("result") for vote in leaf.facts.get("votes") or ()]
    yes, no = votes.count(True), votes.count(False)
    if leaf.outcome == Outcome.NOT_JUDGED:
        yield 1.0, "it was not judged"
    elif yes and no:
        yield 2 * min(yes, no) / len(votes), f"the votes are split, {yes} to {no}"
    signals = [str(signal) for signal in leaf.facts.get("signals") or ()]
    for signal in signals:
        yield 0.9 if signal.startswith(_ORDERS) else 0.4, _clause(signal_words(signal))
    if leaf.outcome == Outcome.PASSED and leaf.facts.get("grounded") is False:
        yield 0.6, "it has no valid quote, so the strict score differs"
    if leaf.outcome == Outcome.UNDECIDED:
        yield 0.5, "the judge script never settled it"


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")
