"""Consistency of a judge across votes and repeated results."""

from __future__ import annotations

from typing import Any

import pytest

from judges.analysis.sensitivity.consistency import Consistency, consistency
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, result_of, rubric_of


def judged(*children, **changes: Any) -> dict[str, Any]:
    return result_of(rubric_of(*children), **changes)


def asked(outcome=PASSED, **more):
    return leaf("claim", outcome, claim="It is so", sources=("https://a.example/",), **more)


def found(*results: dict[str, Any]) -> Consistency:
    return consistency(results)


def test_no_results_give_empty_figures():
    measured = found()
    assert (measured.results, measured.votes, measured.again, measured.flaky_share, measured.flaky) == (
        0,
        (),
        0,
        None,
        (),
    )


def test_votes_are_counted_by_model_and_prompt():
    measured = found(
        judged(asked(votes=(True, True)), leaf("b", claim="y", votes=(True, False, True))),
        judged(asked(votes=(True, True), model="other")),
        judged(asked(votes=(True, True), prompt="verify_page@2")),
    )
    assert [(vote.model, vote.prompt, vote.leaves, vote.split, vote.votes) for vote in measured.votes] == [
        ("other", "verify_page@1", 1, 0, 2),
        ("scripted", "verify_page@1", 2, 1, 5),
        ("scripted", "verify_page@2", 1, 0, 2),
    ]
    both = measured.votes[1]
    assert both.agreement == pytest.approx((1 + 1 / 3) / 2)  # all pairs of one leaf agree, 1 of 3 pairs of the other
    assert both.split_share is not None and both.split_share.low < 0.5 < both.split_share.high


def test_single_vote_has_no_agreement():
    [one] = found(judged(asked(votes=(True,)))).votes
    assert (one.leaves, one.votes, one.agreement, one.split_share) == (0, 1, None, None)


def test_votes_lost_to_a_fault_are_counted_separately():
    [one] = found(judged(asked(NOT_JUDGED, votes=(True, None, None)))).votes
    assert (one.votes, one.lost, one.leaves) == (3, 2, 0)


def test_leaf_with_both_outcomes_is_flaky():
    measured = found(judged(asked(), id="r1"), judged(asked(FAILED), id="r2"), judged(asked(), id="r3"))
    assert (measured.again, len(measured.flaky)) == (1, 1)
    assert measured.flaky[0].results == (("r1", PASSED), ("r2", FAILED), ("r3", PASSED))
    assert measured.flaky_share is not None and measured.flaky_share.high == 1.0


@pytest.mark.parametrize(
    "changed",
    [
        {"answer_sha256": "d" * 64},
        {"script": {"sha256": "e" * 64}},
        {"task_id": "another"},
    ],
)
def test_results_of_different_inputs_are_not_compared(changed: dict[str, Any]):
    measured = found(judged(asked()), judged(asked(FAILED), **changed))
    assert (measured.again, measured.flaky) == (0, ())


def test_verdicts_of_another_model_prompt_or_evidence_are_not_compared():
    plain = judged(asked())
    evidence = judged(asked(FAILED))
    evidence["eval_breakdown"][0]["verification_tree"]["children"][0]["page_digests"] = ["f" * 64]
    measured = found(
        plain, judged(asked(FAILED, model="other")), judged(asked(FAILED, prompt="verify_page@2")), evidence
    )
    assert measured.again == 0


def test_not_judged_leaf_is_not_flaky():
    measured = found(judged(asked()), judged(asked(NOT_JUDGED, votes=(None,))))
    assert (measured.again, measured.flaky) == (0, ())


def test_least_decided_leaves_are_listed_first():
    def run(first, second):
        return judged(leaf("even", first, claim="x", sources=()), leaf("nearly", second, claim="y", sources=()), id="r")

    measured = found(run(PASSED, PASSED), run(FAILED, PASSED), run(PASSED, PASSED), run(FAILED, FAILED))
    assert [one.leaf for one in measured.flaky] == ["even", "nearly"]
