"""Meta-evaluation report as JSON, for ``assay meta-eval --json`` and certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from judges.analysis.labels import LabelFile
from judges.analysis.meta_eval.items import Exclusion, Item
from judges.analysis.meta_eval.judge_agreement import ComparedItem, JudgeAgreement, UnjudgedItem
from judges.analysis.statistics.agreement import Agreement

REPORT_VERSION: Final = 1
FIGURES: Final = ("raw", "kappa", "ac1", "tpr", "tnr")


def report_json(file: LabelFile, items: Sequence[Item], judges: Sequence[JudgeAgreement]) -> dict[str, Any]:
    """Return the whole report, with ``judges`` in display order."""
    return {
        "report_version": REPORT_VERSION,
        "labels": labels_json(file, items),
        "judges": [_measured(judge) for judge in judges],
    }


def labels_json(file: LabelFile, items: Sequence[Item]) -> dict[str, Any]:
    """Return the summary of the labels."""
    left_out = Counter(item.left_out for item in items)
    labelled_by_several = [item for item in items if len(item.labels) > 1 and item.left_out is not Exclusion.BY_CODE]
    return {
        "sha256": file.sha256,
        "labels": len(file.labels),
        "items": len(items),
        "usable": left_out[None],
        "left_out": {reason.value: left_out[reason] for reason in Exclusion},
        "reviewers": sorted({label.reviewer for label in file.labels if label.reviewer}),
        "labelled_by_several": {
            "items": len(labelled_by_several),
            "unanimous": sum(item.unanimous for item in labelled_by_several),
        },
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
