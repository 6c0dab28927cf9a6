"""Old and new scores side by side: ranks, bounds, missing results and the limit on flips."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.features.rescore.side_by_side import RescoredAnswer, comparison_json, rescored_answer
from app.storage.records import Job, JobStatus
from rubrics.verdict import Outcome
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, result_of, rubric_of

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def job(agent: str, answer: str = "answer_1.md") -> Job:
    return Job(
        id=f"job_{agent}", submission_id="rescore_1", owner="owner", agent=agent, task_id="task", answer_name=answer,
        answer_sha256="b" * 64, model=None, status=JobStatus.SUCCEEDED, stage=None, pages_done=0, pages_total=0,
        leaves_done=0, leaves_total=0, queue_id=1, attempts=1, attempts_allowed=3, error=None, result_id="res_1",
        created_at=NOW, started_at=NOW, finished_at=NOW, revision=1, stored_pages=True,
    )  # fmt: skip


def body(*outcomes: Outcome, **changes: Any) -> str:
    leaves = [leaf(f"leaf_{nth}", outcome, claim=f"claim {nth}") for nth, outcome in enumerate(outcomes)]
    return json.dumps(result_of(rubric_of(*leaves), **changes))


def answer(agent: str, before: tuple[Outcome, ...] | None, after: tuple[Outcome, ...] | None) -> RescoredAnswer:
    sides = [None if side is None else body(*side) for side in (before, after)]
    return rescored_answer(job(agent), *sides)


def agents(*answers: RescoredAnswer) -> dict[str, tuple[int, int]]:
    return {row["agent"]: (row["rank_before"], row["rank_after"]) for row in comparison_json(answers)["agents"]}


def test_agents_are_ranked_by_mean_before_and_after():
    found = agents(
        answer("otter", (PASSED, PASSED), (FAILED, FAILED)),
        answer("heron", (PASSED, FAILED), (PASSED, PASSED)),
    )
    assert found == {"heron": (2, 1), "otter": (1, 2)}


def test_equal_means_share_a_rank_and_unjudged_leaves_count_nothing():
    found = agents(
        answer("otter", (PASSED, FAILED), (PASSED, NOT_JUDGED)),
        answer("heron", (FAILED, PASSED), (PASSED, FAILED)),
        answer("stork", (FAILED, FAILED), (PASSED, PASSED)),
    )
    assert found == {"stork": (3, 1), "heron": (1, 2), "otter": (1, 2)}


def test_agreement_counts_the_claims_that_both_judges_decided():
    found = comparison_json(
        [
            answer("otter", (PASSED, PASSED, FAILED, PASSED), (PASSED, FAILED, FAILED, NOT_JUDGED)),
            answer("heron", (FAILED,), (FAILED,)),
            answer("stork", None, (PASSED,)),
        ]
    )["agreement"]
    assert (found["claims"], found["equal"], found["kappa"]["value"]) == (4, 3, pytest.approx(0.5))
    assert comparison_json([])["agreement"]["kappa"]["value"] is None


def test_difference_has_bounds_while_a_leaf_is_not_judged():
    fields = answer("otter", (PASSED, PASSED), (PASSED, NOT_JUDGED)).fields
    assert fields["difference"] == {"value": None, "low": -0.5, "high": 0.0}
    assert fields["after"]["status"] == "incomplete"
