"""Consistency of a judge: agreement of votes on one leaf, and of repeated judgements of one leaf. Pure.

The two differ. Split votes are votes of one judgement on the same evidence. A flaky leaf has different outcomes in
different results although answer, judge file, model, claim and evidence were equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from judges.analysis.overrides import JudgedNode, judged_leaves, vote_counts
from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.wilson import wilson
from rubrics.result_fields import page_digests_of, script_sha256_of
from rubrics.verdict import Outcome

_DECIDED = (Outcome.PASSED, Outcome.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteStatistics:
    """Vote statistics of one model with one prompt.

    ``leaves`` counts leaves with at least two votes, ``split`` those with differing votes. ``agreement`` is the
    probability that two votes on one leaf agree, averaged over leaves; None without such a leaf. Voting stops once the
    majority is certain, so leaves whose first votes agreed have fewer votes. ``lost`` counts votes without a verdict
    because of a fault, ``cached`` votes from the reply cache.
    """

    model: str
    prompt: str | None
    leaves: int
    split: int
    split_share: Interval | None
    agreement: float | None
    votes: int
    lost: int
    cached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyLeaf:
    """Leaf that was judged several times with equal inputs and different outcomes.

    ``results`` are (result id, outcome) in the given order.
    """

    task_id: str
    answer_sha256: str
    leaf: str
    model: str
    results: tuple[tuple[str, Outcome], ...]

    @property
    def passed(self) -> int:
        return sum(outcome is Outcome.PASSED for _, outcome in self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Consistency figures. ``again`` counts leaves that were judged more than once with equal inputs.

    ``flaky`` lists those with different outcomes, the most evenly split first.
    """

    results: int
    votes: tuple[VoteStatistics, ...]
    again: int
    flaky_share: Interval | None
    flaky: tuple[FlakyLeaf, ...]


def consistency(results: Iterable[Mapping[str, Any]]) -> Consistency:
    """Return the consistency figures of results of one or more judges."""
    count = 0
    cast: dict[tuple[str, str | None], list[JudgedNode]] = {}
    repeated: dict[tuple[object, ...], list[tuple[str, Outcome]]] = {}
    for result in results:
        count += 1
        for key, leaf in judged_leaves(result).items():
            if leaf.data.get("votes"):
                cast.setdefault((_model(leaf, result), leaf.data.get("prompt")), []).append(leaf)
            if leaf.outcome in _DECIDED and leaf.data.get("claim") is not None:
                repeated.setdefault(_input_key(result, key, leaf), []).append((str(result.get("id")), leaf.outcome))
    judged_again = {inputs: judged for inputs, judged in repeated.items() if len(judged) > 1}
    flaky = [
        _flaky(inputs, judged) for inputs, judged in judged_again.items() if len({outcome for _, outcome in judged}) > 1
    ]
    flaky.sort(key=lambda one: (abs(2 * one.passed - len(one.results)) / len(one.results), one.task_id, one.leaf))
    return Consistency(
        results=count,
        votes=tuple(_votes(model, prompt, leaves) for (model, prompt), leaves in sorted(cast.items(), key=str)),
        again=len(judged_again),
        flaky_share=wilson(len(flaky), len(judged_again)),
        flaky=tuple(flaky),
    )


def _votes(model: str, prompt: str | None, leaves: Sequence[JudgedNode]) -> VoteStatistics:
    counts = [vote_counts(leaf) for leaf in leaves]
    repeated = [(yes, no) for yes, no in counts if yes + no > 1]
    split = sum(1 for yes, no in repeated if yes and no)
    pairs = [(comb(yes, 2) + comb(no, 2)) / comb(yes + no, 2) for yes, no in repeated]
    single = [vote for leaf in leaves for vote in leaf.data["votes"]]
    return VoteStatistics(
        model=model,
        prompt=prompt,
        leaves=len(repeated),
        split=split,
        split_share=wilson(split, len(repeated)),
        agreement=sum(pairs) / len(pairs) if pairs else None,
        votes=len(single),
        lost=sum(vote.get("result") is None for vote in single),
        cached=sum(bool(vote.get("cached")) for vote in single),
    )


def _input_key(result: Mapping[str, Any], key: str, leaf: JudgedNode) -> tuple[object, ...]:
    """Return all inputs that must be equal for equal verdicts. The first four identify the leaf."""
    return (
        str(result.get("task_id")),
        str(result.get("answer_sha256")),
        key,
        _model(leaf, result),
        script_sha256_of(result),
        leaf.data.get("prompt"),
        leaf.data.get("claim"),
        leaf.data.get("instruction"),
        tuple(sorted(page_digests_of(leaf.data))),
    )


def _model(leaf: JudgedNode, result: Mapping[str, Any]) -> str:
    votes_by_model = Counter(str(vote["model"]) for vote in leaf.data.get("votes") or () if vote.get("model"))
    return votes_by_model.most_common(1)[0][0] if votes_by_model else str(leaf.data.get("model") or result.get("model"))


def _flaky(inputs: tuple[object, ...], judged: Sequence[tuple[str, Outcome]]) -> FlakyLeaf:
    task_id, answer, leaf, model = map(str, inputs[:4])
    return FlakyLeaf(task_id=task_id, answer_sha256=answer, leaf=leaf, model=model, results=tuple(judged))
