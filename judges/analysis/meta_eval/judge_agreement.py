"""Agreement of judges with people on labelled items. Pure.

A judge is measured on items that have both its verdict and a human one. All other items are counted separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judges.analysis.labels import RecordedVerdict
from judges.analysis.meta_eval.ask import JudgedItem
from judges.analysis.meta_eval.items import Item
from judges.analysis.statistics.agreement import Agreement, agreement, confusion_of
from rubrics.verdict import Outcome, Usage

DECIDED = (Outcome.PASSED, Outcome.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedItem:
    """Verdict of a judge and of people on one item."""

    item: Item
    judge: bool
    reasoning: str = ""

    @property
    def human(self) -> bool:
        return bool(self.item.human)

    @property
    def agrees(self) -> bool:
        return self.judge == self.human


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedItem:
    """Item without a verdict of the judge, and the reason."""

    item: Item
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of one judge with people. ``asked``: it was asked now; otherwise its verdicts come from the labels.

    ``by_task`` contains (task id, agreement) pairs. ``without_model`` counts items that needed no model, for example
    because their page is gone. ``votes`` is None if the labels do not record it.
    """

    model: str
    asked: bool
    votes: int | None
    prompts: tuple[str, ...]
    agreement: Agreement
    by_task: tuple[tuple[str, Agreement], ...]
    disagreements: tuple[ComparedItem, ...]
    unjudged: tuple[UnjudgedItem, ...]
    without_model: int
    usage: Usage


def agreement_of_asked(model: str, asked: Iterable[JudgedItem], *, votes: int) -> JudgeAgreement:
    """Return the agreement of a judge that was asked now."""
    every = tuple(asked)
    compared = [
        ComparedItem(item=one.item, judge=one.judge, reasoning=one.verdict.reasoning)
        for one in every
        if one.judge is not None
    ]
    silent = [one for one in every if one.judge is None]
    return JudgeAgreement(
        model=model,
        asked=True,
        votes=votes,
        prompts=_sorted(one.verdict.prompt for one in every if one.judge is not None),
        agreement=_agreement(compared),
        by_task=_by_task(compared),
        disagreements=tuple(one for one in compared if not one.agrees),
        unjudged=tuple(
            UnjudgedItem(
                item=one.item, reason=str(one.verdict.reason or one.verdict.outcome), detail=one.verdict.reasoning
            )
            for one in silent
            if one.verdict.outcome not in DECIDED
        ),
        without_model=sum(one.verdict.outcome in DECIDED for one in silent),
        usage=sum((one.verdict.spent for one in every), Usage()),
    )


def agreement_of_recorded(items: Iterable[Item]) -> tuple[JudgeAgreement, ...]:
    """Return the agreement of each judge with verdicts in the labels, sorted by model. Sends no requests."""
    by_model: dict[str, list[tuple[Item, RecordedVerdict]]] = {}
    for item in items:
        verdicts = item.label.judge
        if item.left_out is None and verdicts is not None and verdicts.model is not None:
            by_model.setdefault(verdicts.model, []).append((item, verdicts))
    return tuple(_recorded(model, by_model[model]) for model in sorted(by_model))


def _recorded(model: str, verdicts: Sequence[tuple[Item, RecordedVerdict]]) -> JudgeAgreement:
    decided = [(item, verdict) for item, verdict in verdicts if verdict.outcome in DECIDED]
    compared = [ComparedItem(item=item, judge=verdict.outcome is Outcome.PASSED) for item, verdict in decided]
    return JudgeAgreement(
        model=model,
        asked=False,
        votes=None,
        prompts=_sorted(verdict.prompt for _, verdict in decided),
        agreement=_agreement(compared),
        by_task=_by_task(compared),
        disagreements=tuple(one for one in compared if not one.agrees),
        unjudged=tuple(
            UnjudgedItem(item=item, reason=verdict.reason or verdict.outcome.value)
            for item, verdict in verdicts
            if verdict.outcome not in DECIDED
        ),
        without_model=0,
        usage=Usage(),
    )


def _by_task(compared: Iterable[ComparedItem]) -> tuple[tuple[str, Agreement], ...]:
    by_task: dict[str, list[ComparedItem]] = {}
    for one in compared:
        by_task.setdefault(one.item.label.task_id or "", []).append(one)
    return tuple((task, _agreement(by_task[task])) for task in sorted(by_task))


def _agreement(compared: Iterable[ComparedItem]) -> Agreement:
    return agreement(confusion_of((one.judge, one.human) for one in compared))


def _sorted(prompts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({prompt for prompt in prompts if prompt is not None}))
