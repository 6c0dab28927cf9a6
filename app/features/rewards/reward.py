"""Reward of a judged answer: a number if the verdict is reliable, otherwise a mask with a reason. Pure functions.

A reward is masked, and never 0, if a fault of the model, of pages or of the service could have changed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cache.capture import EVIDENCE_OUTCOMES
from cache.urls import canonical_key
from rubrics.scoring import Score, bounded_score
from rubrics.tree_json import counts_strictly, leaf_states, leaves_of
from rubrics.verdict import Outcome, Reason


class MaskReason(StrEnum):
    """Why a reward is masked."""

    DEADLINE = "deadline"
    """The verification did not end in time."""
    BUDGET = "budget"
    """A model request did not fit into a budget."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """The model was unreachable, overloaded or failing, or its provider rejects the requests."""
    MODEL_OUTPUT = "model_output"
    """Replies of the model could not be used, or gave no majority."""
    PAGES_UNREADABLE = "pages_unreadable"
    """Too many of the pages show a wall or could not be captured."""
    BROWSER_UNAVAILABLE = "browser_unavailable"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    """The database could not be reached."""
    JUDGE_FAILED = "judge_failed"
    """The task file itself failed."""
    NOTHING_APPLIES = "nothing_applies"
    """No part of the rubric applies to the answer."""
    NOT_JUDGED = "not_judged"
    """A leaf was not judged for another reason."""


class ScoreKind(StrEnum):
    """Score that becomes the reward."""

    COMPATIBLE = "compatible"
    """Every supported claim counts, as in the public toolkit."""
    STRICT = "strict"
    """A supported claim on a page counts only with a quote that code found in the page."""


_PAGE_FAULTS: Final = frozenset(
    {
        Reason.CAPTURE_FAILED,
        Reason.CAPTURE_BLOCKED,
        Reason.EGRESS_DENIED,
        Reason.EVIDENCE_CORRUPT,
        Reason.PAGE_NOT_STORED,
        Reason.PAGE_NOT_FULLY_SEEN,
    }
)
_MODEL_FAULTS: Final = {
    Reason.BUDGET: MaskReason.BUDGET,
    Reason.LLM_UNAVAILABLE: MaskReason.MODEL_UNAVAILABLE,
    Reason.LLM_REJECTED: MaskReason.MODEL_UNAVAILABLE,
    Reason.TIMEOUT: MaskReason.MODEL_UNAVAILABLE,
    Reason.LLM_OUTPUT_UNUSABLE: MaskReason.MODEL_OUTPUT,
    Reason.NO_MAJORITY: MaskReason.MODEL_OUTPUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Reason for which there is no reward, with details for a person."""

    reason: MaskReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageShare:
    """Number of pages that are cited or were read, and of those without usable or without complete content."""

    total: int
    unreadable: int

    @property
    def share(self) -> float:
        return self.unreadable / self.total if self.total else 0.0

    @classmethod
    def of(cls, result: Mapping[str, Any] | None, cited: Iterable[str]) -> PageShare:
        """Count the pages of a result together with the cited URLs. A page that does not exist is readable: it fails
        the claim. The sources of a claim that was not judged because a page was not fully seen are not."""
        is_usable = {canonical_key(url): False for url in cited}
        for page in () if result is None else result["pages"]:
            is_usable[canonical_key(page["url"])] = page["outcome"] in EVIDENCE_OUTCOMES or bool(page["gone"])
        for leaf in () if result is None else leaves_of(result):
            if leaf.get("reason") == Reason.PAGE_NOT_FULLY_SEEN:
                is_usable |= {canonical_key(url): False for url in leaf["sources"] or ()}
        return cls(total=len(is_usable), unreadable=sum(not usable for usable in is_usable.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """Reward in [0, 1], or a mask. ``value`` is None if and only if ``mask`` is not None."""

    value: float | None
    mask: Mask | None = None


def reward_of(
    result: Mapping[str, Any],
    *,
    kind: ScoreKind,
    pages: PageShare,
    max_unreadable_share: float,
    faults: Sequence[Reason],
    is_late: bool,
) -> Reward:
    """Return the reward for the result of an answer.

    If only unreadable pages leave the score unknown, and no more than ``max_unreadable_share`` of the pages are
    unreadable, the reward is the middle of the bounds.

    Args:
        faults: Reasons of the model requests that failed, which explain a failed extraction.
        is_late: The deadline ended the judging.
    """
    if pages.share > max_unreadable_share:
        detail = f"{pages.unreadable} of {pages.total} pages are not readable (maximum share {max_unreadable_share:g})"
        return Reward(value=None, mask=Mask(reason=MaskReason.PAGES_UNREADABLE, detail=detail))
    if result["score"]["low"] is None:
        detail = "No part of the rubric applies to the answer."
        return Reward(value=None, mask=Mask(reason=MaskReason.NOTHING_APPLIES, detail=detail))
    score = scores(result)[kind]
    if score.value is not None:
        return Reward(value=score.value)
    mask = _mask(result, faults, is_late=is_late)
    if mask.reason is MaskReason.PAGES_UNREADABLE:
        return Reward(value=(score.low + score.high) / 2)
    return Reward(value=None, mask=mask)


def scores(result: Mapping[str, Any]) -> dict[ScoreKind, Score]:
    """Return both scores with their bounds: 0 and 1 if nothing applies."""
    fields = {ScoreKind.COMPATIBLE: "score", ScoreKind.STRICT: "score_strict"}
    if result["score"]["low"] is None:
        return dict.fromkeys(fields, bounded_score(0.0, 1.0))
    return {kind: Score(**result[field]) for kind, field in fields.items()}


def components(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the leaves in order. The scores of a leaf are null if it was not judged, or is blocked by such a leaf."""
    found = list(leaf_states(result))
    by_id = {leaf["id"]: leaf for leaf, _ in found}
    return [_component(leaf, state, by_id) for leaf, state in found]


def _component(leaf: Mapping[str, Any], state: str, by_id: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    score = None if _is_unknown(leaf, by_id) else float(leaf["outcome"] == Outcome.PASSED)
    return {
        "id": leaf["id"],
        "description": leaf["desc"],
        "critical": leaf["critical"],
        "weight": leaf["weight"],
        "outcome": leaf["outcome"],
        "reason": leaf["reason"],
        "score": score,
        "score_strict": 0.0 if state == Outcome.PASSED and not counts_strictly(leaf) else score,
    }


def _is_unknown(leaf: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> bool:
    seen: set[str] = set()
    while leaf["outcome"] == Outcome.SKIPPED and leaf["blocked_by"] in by_id and leaf["id"] not in seen:
        seen.add(leaf["id"])
        leaf = by_id[leaf["blocked_by"]]
    return bool(leaf["outcome"] == Outcome.NOT_JUDGED)


def _mask(result: Mapping[str, Any], faults: Sequence[Reason], *, is_late: bool) -> Mask:
    """Return the most severe reason of the leaves that were not judged, with the explanation of the first such leaf."""
    unknown = [leaf for leaf in leaves_of(result) if leaf["outcome"] == Outcome.NOT_JUDGED]
    # A public script that lost values or was stopped may have declared no leaf that was not judged.
    lost = [result[name] for name in ("extraction_error", "cut_short") if result.get(name) is not None]
    unknown += [{"reason": Reason.EXTRACTION_FAILED, "reasoning": message} for message in lost]
    reasons = [(_leaf_reason(leaf, faults, is_late=is_late), leaf["reasoning"] or "") for leaf in unknown]
    order = list(MaskReason)
    # A fault of pages is tolerable, so it only counts if no other fault remains.
    order.remove(MaskReason.PAGES_UNREADABLE)
    order.append(MaskReason.PAGES_UNREADABLE)
    reason, detail = min(reasons, key=lambda each: order.index(each[0]), default=(MaskReason.NOT_JUDGED, ""))
    return Mask(reason=reason, detail=detail)


def _leaf_reason(leaf: Mapping[str, Any], faults: Sequence[Reason], *, is_late: bool) -> MaskReason:
    reason = Reason(leaf["reason"]) if leaf["reason"] else None
    if is_late and reason in (Reason.TIMEOUT, Reason.EXTRACTION_FAILED):
        return MaskReason.DEADLINE
    if reason is Reason.EXTRACTION_FAILED:
        return next((mask for fault in faults if (mask := _MODEL_FAULTS.get(fault))), MaskReason.NOT_JUDGED)
    faulty = (Reason(vote["fault"]) for vote in leaf.get("votes") or () if vote["fault"])
    lost = [fault for fault in faulty if fault is not Reason.PAGE_NOT_FULLY_SEEN]
    is_page_fault = reason in _PAGE_FAULTS or reason is Reason.TIMEOUT
    if is_page_fault and not lost:
        return MaskReason.PAGES_UNREADABLE
    if lost and (is_page_fault or reason is Reason.NO_MAJORITY):
        # The model did not judge another source of the leaf, or the votes failed for different reasons.
        reason = Reason.LLM_OUTPUT_UNUSABLE if Reason.LLM_OUTPUT_UNUSABLE in lost else lost[0]
    return _MODEL_FAULTS.get(reason, MaskReason.NOT_JUDGED) if reason is not None else MaskReason.NOT_JUDGED
