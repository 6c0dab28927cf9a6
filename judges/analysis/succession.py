"""Succession of judges: what changes if a new judge replaces an old one. Pure.

The new judge decides the claims that the old judge decided, on the same pages. The report has the flipped leaves, the
agreement of the two judges, and the scores of each group (agent or label set) under both. ``decide`` says whether
scores of the two judges may stand in one figure; docs/decisions/0066 gives the reasons for the thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import combinations
from statistics import fmean
from typing import Any, Final

from judges.analysis.corrected_score import judged_by_model
from judges.analysis.labels import HumanDecision, label_from_leaf
from judges.analysis.meta_eval.ask import JudgedItem
from judges.analysis.meta_eval.items import Item
from judges.analysis.overrides import JudgedNode, judged_tree, leaf_intervals
from judges.analysis.statistics.agreement import Confusion, Estimate, confusion_of, kappa, share_estimate
from judges.analysis.statistics.headline import Headline, Trial, headline
from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.paired import MIN_TASKS_FOR_T, interval_over_bounds
from judges.errors import ModelNotConfigured
from judges.llm.providers import parse_model
from rubrics.scoring import bounds
from rubrics.tree import leaves_below
from rubrics.verdict import Outcome

MARGIN: Final = 0.03
"""Largest change of a score that may be ignored: about half the interval of a score over 130 tasks."""
_UNLABELLED: Final = datetime.min.replace(tzinfo=UTC)
KAPPA_TO_MIX: Final = 0.8
KAPPA_TO_CORRECT: Final = 0.667
"""K. Krippendorff, "Content Analysis" (2004), chapter 11: reliable from 0.8, tentative conclusions from 0.667."""


class Mixing(StrEnum):
    """Whether scores of the two judges may stand in one figure."""

    YES = "may_be_mixed"
    OFFSET = "may_be_mixed_with_offset"
    NO = "must_not_be_mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """Verdict of the old judge on a claim, and the item to ask the new judge. ``group`` is an agent or a label set."""

    group: str
    task_id: str
    answer_name: str
    result_id: str
    leaf: str
    item: Item
    old: bool
    reasoning: str = ""
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Stored request with the verdict of the new judge."""

    request: StoredRequest
    asked: JudgedItem

    @property
    def new(self) -> bool | None:
        """Whether the new judge passed the claim; None if it gave no verdict."""
        return self.asked.judge


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTwice:
    """Bounds of the score of one answer, or of one labelled claim, under both judges."""

    group: str
    task_id: str
    run: str
    old: tuple[float, float]
    new: tuple[float, float]

    @property
    def difference(self) -> tuple[float, float]:
        """Return the bounds of new - old. Leaves that neither judge decided have the same value on both sides."""
        at_bounds = [new - old for old, new in zip(self.old, self.new, strict=True)]
        return min(at_bounds), max(at_bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Mean difference over tasks, new - old, with its 95 % interval; None if it cannot be computed."""

    low: float
    high: float
    interval: Interval | None
    tasks: int

    def within(self, margin: float, *, around: float = 0.0) -> bool:
        return (
            self.interval is not None and around - margin <= self.interval.low <= self.interval.high <= around + margin
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEffect:
    """Effect on one agent or label set. Ranks are ranges: agents whose order is uncertain share them."""

    name: str
    old: Headline
    new: Headline
    change: Change
    leaves: int
    flips: int
    old_rank: tuple[int, int] = (1, 1)
    new_rank: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEffect:
    """Difference of two agents on their shared tasks, first - second, under each judge.

    ``reversed``: one judge separates the agents (the interval excludes 0), and the other orders them differently.
    """

    first: str
    second: str
    old: Change
    new: Change

    @property
    def reversed(self) -> bool:
        signs = [_sign(one) for one in (self.old, self.new)]
        orders = [one.low + one.high for one in (self.old, self.new)]
        return any(signs) and orders[0] * orders[1] < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """Comparison of two judges. ``confusion`` has the new judge as judge and the old one in the place of people.

    ``offset`` is the mean change over all groups. ``reasons`` say why the verdict is not a better one.
    """

    confusion: Confusion
    raw: Estimate
    kappa: Estimate
    groups: tuple[GroupEffect, ...]
    pairs: tuple[PairEffect, ...]
    offset: Change
    margin: float
    mixing: Mixing
    reasons: tuple[str, ...]


def is_judge(recorded: object, model: str) -> bool:
    """Return whether a recorded name of a judge means ``model``. Results omit the provider.

    >>> is_judge("gpt-6-luna", "openai/gpt-6-luna"), is_judge("azure/x", "openai/x")
    (True, False)
    """
    names = {model}
    try:
        parsed = parse_model(model)
        names |= {parsed.model, str(parsed)}
    except ModelNotConfigured:
        pass  # the name of an earlier judge may no longer be valid
    return recorded in names


def requests_of(result: Mapping[str, Any], answer: str, *, old: str, group: str) -> Iterator[StoredRequest]:
    """Yield the claims of a result (JSON) that the judge ``old`` decided. ``answer`` is the judged text."""
    root = judged_tree(result)
    for leaf in () if root is None else leaves_below(root):
        if not judged_by_model(leaf) or not is_judge(leaf.data.get("model"), old) or leaf.data.get("claim") is None:
            continue
        label = label_from_leaf(
            result, leaf.data, key=leaf.key, human=HumanDecision.UNCLEAR, reviewer="", reason="",
            at=_UNLABELLED, answer=answer,
        )  # fmt: skip
        yield StoredRequest(
            group=group,
            task_id=str(result["task_id"]),
            answer_name=str(result["answer_name"]),
            result_id=str(result.get("id") or ""),
            leaf=leaf.key,
            item=Item(label=label, labels=(label,), human=None),
            old=leaf.outcome is Outcome.PASSED,
            reasoning=str(leaf.data.get("reasoning") or ""),
            prompt=leaf.data.get("prompt"),
        )


def scored_twice(root: JudgedNode, replayed: Iterable[Replayed], *, group: str, task_id: str, run: str) -> ScoredTwice:
    """Return the score of an answer under both judges. A leaf without a verdict of the new judge is unknown."""
    verdicts = {one.request.leaf: (one.request.old, one.new) for one in replayed}
    flipped = {key: new for key, (old, new) in verdicts.items() if new is not None and new != old}
    after = _not_judged(root, {key for key, (_, new) in verdicts.items() if new is None})
    old, new = (bounds(tree, leaf_intervals(tree, flips)) for tree, flips in ((root, {}), (after, flipped)))
    return ScoredTwice(group=group, task_id=task_id, run=run, old=(old.low, old.high), new=(new.low, new.high))


def claim_scored_twice(one: Replayed) -> ScoredTwice:
    """Return a labelled claim as an answer with one leaf."""
    new = (0.0, 1.0) if one.new is None else (float(one.new), float(one.new))
    request = one.request
    return ScoredTwice(
        group=request.group, task_id=request.task_id, run=request.leaf, old=(float(request.old),) * 2, new=new
    )


def succession(
    replayed: Sequence[Replayed], scores: Sequence[ScoredTwice], *, margin: float = MARGIN, ranked: bool = True
) -> Succession:
    """Compare two judges. ``scores`` has every answer of each group; ``ranked`` compares the groups with each other.

    Raises:
        ValueError: there is no score.
    """
    verdicts = [(one.new, one.request.old) for one in replayed if one.new is not None]
    confusion = confusion_of(verdicts)
    by_group: dict[str, list[ScoredTwice]] = {}
    for score in scores:
        by_group.setdefault(score.group, []).append(score)
    pairs = tuple(_pair(*two) for two in combinations(by_group.values(), 2)) if ranked else ()
    groups = [_effect(name, own, replayed) for name, own in by_group.items()]
    if ranked:
        groups = [
            replace(one, old_rank=_rank(one.name, len(groups), pairs, "old"),
                    new_rank=_rank(one.name, len(groups), pairs, "new"))
            for one in groups
        ]  # fmt: skip
        groups.sort(key=lambda one: -(one.new.score.low + one.new.score.high))
    agreed = confusion.true_positive + confusion.true_negative
    found = Succession(
        confusion=confusion,
        raw=share_estimate(agreed, confusion.n, none="no claim has verdicts of both judges"),
        kappa=kappa(confusion.table),
        groups=tuple(groups),
        pairs=pairs,
        offset=_change([(one.task_id, *one.difference) for one in scores], confusion),
        margin=margin,
        mixing=Mixing.NO,
        reasons=(),
    )
    mixing, reasons = decide(found)
    return replace(found, mixing=mixing, reasons=reasons)


def decide(found: Succession) -> tuple[Mixing, tuple[str, ...]]:
    """Return whether scores may be mixed, and why not without an offset or at all."""
    always = [
        f"{one.name}: only {one.change.tasks} of at least {MIN_TASKS_FOR_T} tasks that are needed to show that scores "
        "stay equal"
        for one in found.groups
        if one.change.tasks < MIN_TASKS_FOR_T
    ]
    always += [
        f"{one.first} and {one.second} change places, and one of the judges separates them"
        for one in found.pairs
        if one.reversed
    ]
    unequal = _moved(found, around=0.0) + _too_low(found.kappa, KAPPA_TO_MIX)
    if not always and not unequal:
        return Mixing.YES, ()
    offset = (found.offset.low + found.offset.high) / 2
    uneven = _moved(found, around=offset) + _too_low(found.kappa, KAPPA_TO_CORRECT)
    if len(found.groups) < 2:
        uneven.append("an offset needs at least two agents or label sets, to show that it is the same for all")
    if not found.offset.within(found.margin, around=offset):
        uneven.append(f"the interval of the offset is not within {found.margin:g} around it")
    if not always and not uneven:
        return Mixing.OFFSET, tuple(unequal)
    return Mixing.NO, tuple(dict.fromkeys(always + unequal + uneven))


def _moved(found: Succession, *, around: float) -> list[str]:
    place = f"{around:+.3f}" if around else "0"
    return [
        f"{one.name}: the interval of its change is not within {found.margin:g} around {place}"
        for one in found.groups
        if not one.change.within(found.margin, around=around)
    ]


def _too_low(estimate: Estimate, least: float) -> list[str]:
    if estimate.value is None:
        return [f"kappa of the judges is unknown: {estimate.reason}"]
    # Without an interval only if the judges always agree. The intervals of the changes then depend on the sample size.
    low = estimate.value if estimate.low is None else estimate.low
    return [] if low >= least else [f"kappa of the judges may be {low:.2f}, below {least:g}"]


def _not_judged(node: JudgedNode, keys: set[str]) -> JudgedNode:
    """Return the tree with these leaves not judged."""
    if not keys:
        return node
    return replace(
        node,
        children=tuple(_not_judged(child, keys) for child in node.children),
        outcome=Outcome.NOT_JUDGED if node.key in keys else node.outcome,
    )


def _effect(name: str, scores: Sequence[ScoredTwice], replayed: Sequence[Replayed]) -> GroupEffect:
    old, new = (
        headline(
            [
                Trial(task_id=one.task_id, run=one.run, low=low, high=high)
                for one in scores
                for low, high in (getattr(one, side),)
            ],
            resampled=False,
        )
        for side in ("old", "new")
    )
    if old is None or new is None:
        raise ValueError(f"{name} has no score")
    verdicts = [(one.new, one.request.old) for one in replayed if one.request.group == name and one.new is not None]
    return GroupEffect(
        name=name,
        old=old,
        new=new,
        change=_change([(one.task_id, *one.difference) for one in scores], confusion_of(verdicts)),
        leaves=len(verdicts),
        flips=sum(new != old for new, old in verdicts),
    )


def _change(differences: Iterable[tuple[str, float, float]], confusion: Confusion | None = None) -> Change:
    """Return the mean over tasks of (task, low, high). ``confusion`` bounds the change if nothing changes."""
    by_task: dict[str, list[tuple[float, float]]] = {}
    for task, low, high in differences:
        by_task.setdefault(task, []).append((low, high))
    lows = [fmean(low for low, _ in own) for own in by_task.values()]
    highs = [fmean(high for _, high in own) for own in by_task.values()]
    interval = interval_over_bounds(lows, highs)
    if interval is None and confusion is not None and not any(lows) and not any(highs):
        flipped = share_estimate(0, confusion.n, none="")
        if flipped.high is not None:
            interval = Interval(
                low=-flipped.high, high=flipped.high, method=f"no flip in {confusion.n} leaves: Wilson (1927)"
            )
    return Change(
        low=fmean(lows) if lows else 0.0, high=fmean(highs) if highs else 0.0, interval=interval, tasks=len(by_task)
    )


def _pair(first: Sequence[ScoredTwice], second: Sequence[ScoredTwice]) -> PairEffect:
    def change(side: str) -> Change:
        values: list[dict[str, list[tuple[float, float]]]] = [{}, {}]
        for by_task, scores in zip(values, (first, second), strict=True):
            for one in scores:
                by_task.setdefault(one.task_id, []).append(getattr(one, side))
        mine, others = (
            {task: (fmean(low for low, _ in own), fmean(high for _, high in own)) for task, own in by_task.items()}
            for by_task in values
        )
        shared = mine.keys() & others.keys()
        return _change(
            (task, mine[task][0] - others[task][1], mine[task][1] - others[task][0]) for task in sorted(shared)
        )

    return PairEffect(first=first[0].group, second=second[0].group, old=change("old"), new=change("new"))


def _sign(change: Change) -> int:
    """Return 1 or -1 if the interval excludes 0, else 0."""
    interval = change.interval
    return 0 if interval is None else (interval.low > 0) - (interval.high < 0)


def _rank(name: str, groups: int, pairs: Iterable[PairEffect], side: str) -> tuple[int, int]:
    """Return the best and the worst rank that the separated pairs allow."""
    better = worse = 0
    for pair in pairs:
        if name in (pair.first, pair.second):
            sign = _sign(getattr(pair, side)) * (1 if pair.first == name else -1)
            better, worse = better + (sign < 0), worse + (sign > 0)
    return 1 + better, groups - worse
