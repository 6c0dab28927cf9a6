"""Which verdicts a person should look at first: those most in doubt, by how much of the score hangs on them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.dashboard.effects import Effect, effects
from app.dashboard.outline import Node, Outline, outline
from app.dashboard.settled import Word, settled
from app.dashboard.wording import signal_words
from rubrics.verdict import Outcome

_ORDERS = "orders_in_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubtful:
    """A leaf of a result. ``doubt`` and ``worth`` in 0..1; ``why`` says in words where the doubt comes from.

    ``word`` is what a person said of it, if that stands.
    """

    result_id: str
    agent: str
    task_id: str
    answer_name: str
    leaf: Node
    doubt: float
    worth: float
    why: Sequence[str]
    word: Word | None

    @property
    def rank(self) -> float:
        return self.doubt * self.worth


def doubtful(result: Mapping[str, Any]) -> list[Doubtful]:
    """The leaves of a result that there is reason to doubt, the weightiest first."""
    drawn: Outline = outline(result)
    worth: Mapping[str, Effect] = effects(drawn)
    words = settled(result).standing
    found = []
    for leaf in drawn.leaves:
        reasons = list(_reasons(leaf))
        if not reasons:
            continue
        found.append(
            Doubtful(
                result_id=str(result["id"]),
                agent=str(result["agent_name"]),
                task_id=str(result["task_id"]),
                answer_name=str(result["answer_name"]),
                leaf=leaf,
                doubt=max(doubt for doubt, _ in reasons),
                worth=worth[leaf.key].worth,
                why=[reason for _, reason in reasons],
                word=words.get(leaf.key),
            )
        )
    return sorted(found, key=lambda one: -one.rank)


def _reasons(leaf: Node) -> Iterable[tuple[float, str]]:
    """Each reason to doubt a verdict, from 0 (none) to 1 (nothing is known)."""
    votes = [vote.get("result") for vote in leaf.facts.get("votes") or ()]
    yes, no = votes.count(True), votes.count(False)
    if leaf.outcome == Outcome.NOT_JUDGED:
        yield 1.0, "nobody found out"
    elif yes and no:
        yield 2 * min(yes, no) / len(votes), f"the votes are split, {yes} to {no}"
    signals = [str(signal) for signal in leaf.facts.get("signals") or ()]
    for signal in signals:
        yield 0.9 if signal.startswith(_ORDERS) else 0.4, _clause(signal_words(signal))
    if leaf.outcome == Outcome.PASSED and leaf.facts.get("grounded") is False:
        yield 0.6, "no quote that counts was found, so the strict score differs"
    if leaf.outcome == Outcome.UNDECIDED:
        yield 0.5, "the judge's script never settled it"


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")
