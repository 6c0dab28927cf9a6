from __future__ import annotations

from pathlib import Path

import pytest

from judges.suites.mind2web.candidate_scores import ScoreTable, parquet_of
from judges.suites.mind2web.data import Candidate, Step
from judges.suites.mind2web.ranks import (
    RankingMetrics,
    RankOrigin,
    ids_in_top_k,
    ranked,
)
from tests.fakes.mind2web import write_scores

STEP = Step(
    place="f.json, task T, action 0 (a)",
    position=0,
    task_id="T",
    action_uid="a",
    number=0,
    website="w",
    domain="d",
    subdomain="",
    task="t",
    history=(),
    page="<a/>",
    op="CLICK",
    value="",
    positives=(Candidate("1"), Candidate("2")),
    negatives=(Candidate("3"), Candidate("4")),
)


def test_ranks_come_from_the_scores(tmp_path: Path):
    file = write_scores(tmp_path / "scores.pkl", {"T_a": {"1": 60, "2": 0, "3": 49, "4": 50, "9": 1}})
    step, origin = ranked(STEP, ScoreTable(parquet_of(file, tmp_path)))
    assert origin is RankOrigin.SCORES
    assert (ids_in_top_k(step.positives, 50), ids_in_top_k(step.negatives, 50)) == (["2"], ["3"])  # strictly below 50


def test_candidates_without_ranks_are_in_listed_order_positives_first():
    step, origin = ranked(STEP, None)
    assert origin is RankOrigin.LISTED
    assert [one.rank for one in (*step.positives, *step.negatives)] == [0, 1, 2, 3]


def test_best_positive_counts_and_a_step_without_positives_is_zero():
    metrics = RankingMetrics()
    for ranks in ([4, 0], [9], [50], []):
        metrics.add(ranks)
    found = metrics.report()
    assert found["mrr"] == pytest.approx((1 + 1 / 10 + 0 + 0) / 4)  # ranks above 49 count as not found
    assert (found["acc"], found["recall@3"], found["recall@10"], found["recall@50"], found["recall@100"]) == (
        0.25,
        0.25,
        0.5,
        0.5,
        0.75,
    )
    assert RankingMetrics().report() == {}
