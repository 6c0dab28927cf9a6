"""Rewards and masks of judged answers."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.rewards.reward import MaskReason, PageShare, Reward, ScoreKind, components, reward_of
from rubrics.verdict import Reason

SITE = "https://velm.example"


def leaf(id: str, outcome: str, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    shown = {"desc": id, "critical": False, "weight": 1.0, "reasoning": f"why {id}", "blocked_by": None, "votes": []}
    return {"id": id, "outcome": outcome, "reason": reason, "children": [], **shown, **fields}


def result(*leaves: dict[str, Any], value: float | None = None, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    score = {"value": value, "low": low, "high": high}
    tree = {"id": "root", "children": list(leaves)}
    return {"score": score, "score_strict": score, "eval_breakdown": [{"verification_tree": tree}]}


def reward(
    judged: dict[str, Any], *, unreadable: int = 0, faults: tuple[Reason, ...] = (), is_late: bool = False
) -> Reward:
    return reward_of(
        judged,
        kind=ScoreKind.COMPATIBLE,
        pages=PageShare(total=4, unreadable=unreadable),
        max_unreadable_share=0.25,
        faults=faults,
        is_late=is_late,
    )


@pytest.mark.parametrize(
    ("unjudged", "faults", "is_late", "expected"),
    [
        (leaf("a", "not_judged", "llm_unavailable"), (), False, MaskReason.MODEL_UNAVAILABLE),
        (leaf("a", "not_judged", "timeout", votes=[{"fault": "timeout"}]), (), False, MaskReason.MODEL_UNAVAILABLE),
        (leaf("a", "not_judged", "timeout"), (), True, MaskReason.DEADLINE),
        (leaf("a", "not_judged", "no_majority", votes=[{"fault": None}]), (), False, MaskReason.MODEL_OUTPUT),
        # one source is unreadable, and the model did not judge another
        (
            leaf("a", "not_judged", "capture_blocked", votes=[{"fault": "llm_unavailable"}]),
            (),
            False,
            MaskReason.MODEL_UNAVAILABLE,
        ),
        (leaf("a", "not_judged", "extraction_failed"), (Reason.BUDGET,), False, MaskReason.BUDGET),
        (leaf("a", "not_judged"), (), False, MaskReason.NOT_JUDGED),
    ],
)
def test_unknown_score_is_masked_with_the_reason_of_the_leaf(
    unjudged: dict[str, Any], faults: tuple[Reason, ...], is_late: bool, expected: MaskReason
) -> None:
    masked = reward(result(leaf("b", "passed"), unjudged, low=0.5), faults=faults, is_late=is_late)

    assert masked.value is None
    assert masked.mask is not None
    assert (masked.mask.reason, masked.mask.detail) == (expected, "why a")


def test_known_score_is_the_reward_even_if_a_leaf_was_not_judged() -> None:
    assert reward(result(leaf("a", "not_judged", "llm_unavailable"), value=0.0, high=0.0)) == Reward(value=0.0)


def test_few_unreadable_pages_give_the_middle_and_many_a_mask() -> None:
    judged = result(leaf("a", "not_judged", "capture_blocked"), leaf("b", "not_judged", "timeout"), low=0.2, high=0.6)

    assert reward(judged, unreadable=1).value == pytest.approx(0.4)
    many = reward(judged, unreadable=2)
    known = reward(result(leaf("a", "passed"), value=1.0, low=1.0), unreadable=2)
    assert [each.mask and each.mask.reason for each in (many, known)] == [MaskReason.PAGES_UNREADABLE] * 2


@pytest.mark.parametrize(
    ("field", "faults", "is_late", "expected"),
    [
        ("extraction_error", (Reason.LLM_UNAVAILABLE,), False, MaskReason.MODEL_UNAVAILABLE),
        ("cut_short", (), True, MaskReason.DEADLINE),
    ],
)
def test_lost_values_of_a_script_count_before_an_unreadable_page(
    field: str, faults: tuple[Reason, ...], is_late: bool, expected: MaskReason
) -> None:
    judged = result(leaf("a", "not_judged", "capture_blocked")) | {"extraction_error": None, field: "lost"}
    masked = reward(judged, unreadable=1, faults=faults, is_late=is_late)

    assert masked.value is None
    assert masked.mask is not None
    assert (masked.mask.reason, masked.mask.detail) == (expected, "lost")


def test_leaf_behind_one_that_was_not_judged_has_no_score() -> None:
    found = components(
        result(
            leaf("a", "not_judged", "llm_unavailable"),
            leaf("b", "skipped", "gated", blocked_by="a"),
            leaf("c", "skipped", "gated", blocked_by="d"),
            leaf("d", "failed", "refuted"),
            leaf("e", "passed", grounded=False),
            leaf("f", "undecided"),
        )
    )

    assert {each["id"]: each["score"] for each in found} == {"a": None, "b": None, "c": 0, "d": 0, "e": 1, "f": 0}
    assert found[4]["score_strict"] == 0.0


def test_penalty_counts_in_the_strict_score_without_a_quote() -> None:
    part = leaf("mistakes", "", weight=-2.0) | {"children": [leaf("made_up", "passed", grounded=False)]}
    [found] = components(result(part))
    assert (found["score"], found["score_strict"]) == (1.0, 1.0)


def test_cited_pages_without_capture_are_unreadable_and_missing_ones_readable() -> None:
    captured = [
        {"url": f"{SITE}/a", "outcome": "ok", "gone": False},
        {"url": f"{SITE}/b", "outcome": "http_error", "gone": True},
        {"url": f"{SITE}/c", "outcome": "captcha", "gone": False},
    ]
    share = PageShare.of(result() | {"pages": captured}, [f"{SITE}/a#top", f"{SITE}/c", f"{SITE}/d"])

    assert (share.total, share.unreadable, share.share) == (4, 2, 0.5)
    assert PageShare.of(None, []).share == 0.0


def test_page_that_was_not_fully_seen_counts_as_unreadable() -> None:
    pages = [{"url": f"{SITE}/{name}", "outcome": "partial", "gone": False} for name in "ab"]
    unseen = leaf("a", "not_judged", Reason.PAGE_NOT_FULLY_SEEN, sources=[f"{SITE}/a"])

    assert PageShare.of(result(unseen) | {"pages": pages}, []) == PageShare(total=2, unreadable=1)
