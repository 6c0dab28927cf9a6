"""Meta-evaluation report as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from judges.analysis.labels import LabelFile
from judges.analysis.meta_eval.items import Exclusion, Item, PartialRule
from judges.analysis.meta_eval.judge_agreement import ComparedItem, JudgeAgreement, UnjudgedItem
from judges.analysis.statistics.agreement import Agreement

REPORT_VERSION: Final = 1
FIGURES: Final = ("raw", "kappa", "ac1", "tpr", "tnr")


class SetTally:
    """Running summary of the labels of one set: how many there are, which are usable, and what they cover."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._left_out: Counter[Exclusion | None] = Counter()
        self._reviewers: set[str] = set()
        self._labels = self._several = self._unanimous = 0

    @property
    def usable(self) -> int:
        return self._left_out[None]

    def add(self, item: Item) -> None:
        self._labels += item.label_count
        self._left_out[item.left_out] += 1
        self._reviewers.update(label.reviewer for label in item.labels if label.reviewer)
        if len(item.labels) > 1 and item.left_out is not Exclusion.BY_CODE:
            self._several += 1
            self._unanimous += item.unanimous

    def as_json(self, sha256: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "sha256": sha256,
            "labels": self._labels,
            "items": self._left_out.total(),
            "usable": self.usable,
            "left_out": {reason.value: self._left_out[reason] for reason in Exclusion},
            "reviewers": sorted(self._reviewers),
            "labelled_by_several": {"items": self._several, "unanimous": self._unanimous},
        }


def report_json(
    name: str,
    file: LabelFile,
    items: Sequence[Item],
    judges: Sequence[JudgeAgreement],
    *,
    rule: PartialRule = PartialRule.FAILED,
) -> dict[str, Any]:
    """Return the whole report of the set ``name``, with ``judges`` in display order."""
    labels = SetTally(name)
    for item in items:
        labels.add(item)
    return {
        "report_version": REPORT_VERSION,
        "rule": rule.value,
        "labels": labels.as_json(file.sha256),
        "judges": [_measured(judge) for judge in judges],
    }


def agreement_json(agreement: Agreement) -> dict[str, Any]:
    """Return the confusion matrix and every figure with its interval."""
    return {
        "n": agreement.confusion.n,
        "confusion": asdict(agreement.confusion),
        **{name: asdict(getattr(agreement, name)) for name in FIGURES},
    }


def _measured(one: JudgeAgreement) -> dict[str, Any]:
    return {
        "model": one.model,
        "run": one.run or None,
        "verdicts": "asked" if one.asked else "recorded",
        "votes": one.votes,
        "prompts": list(one.prompts),
        **agreement_json(one.agreement),
        "by_task": [{"task_id": task or None, **agreement_json(agreement)} for task, agreement in one.by_task],
        "not_judged": [_unjudged(each) for each in one.unjudged],
        "without_model": one.without_model,
        "usage": asdict(one.usage),
        "disagreements": [_disagreement(disagreement) for disagreement in one.disagreements],
    }


def _origin(item: Item) -> Mapping[str, Any]:
    """Return the claim of an item and its origin."""
    label = item.label
    return {
        "claim": label.claim,
        "sources": None if label.sources is None else list(label.sources),
        "task_id": label.task_id,
        "agent": label.agent,
        "answer_name": label.answer_name,
        "result_id": label.result_id,
        "leaf": label.leaf,
    }


def _disagreement(one: ComparedItem) -> dict[str, Any]:
    reasons = [
        {"reviewer": label.reviewer, "human": label.human.value, "reason": label.reason} for label in one.item.labels
    ]
    return {
        **_origin(one.item),
        "human": "passed" if one.human else "failed",
        "judge": "passed" if one.judge else "failed",
        "judge_reasoning": one.reasoning,
        "people": reasons,
    }


def _unjudged(one: UnjudgedItem) -> dict[str, Any]:
    return {**_origin(one.item), "reason": one.reason, "detail": one.detail}
