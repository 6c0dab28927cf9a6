from __future__ import annotations

from typing import Any

from judges.agent_figures import AnswerOutcome, agent_summary, full_summary, scorecard_row
from rubrics.scoring import Score

Json = dict[str, Any]


def result(low: float, high: float | None = None, **more: Any) -> Json:
    high = low if high is None else high
    return {
        "status": "complete" if low == high else "incomplete",
        "score": {"value": low if low == high else None, "low": low, "high": high},
        "final_score": low,
        "timing": {"total_s": 1.5},
        "usage": {"calls": 2, "cached_calls": 1, "input_tokens": 10, "output_tokens": 3, "usd": 0.25},
        **more,
    }


def outcome(task_id: str, k: int, found: Json | None, words: int = 4) -> AnswerOutcome:
    code = None if found is not None else "JUDGE_BUG"
    return AnswerOutcome(task_id=task_id, answer_name=f"answer_{k}.md", words=words, result=found, error_code=code)


def test_unknown_leaves_widen_every_average() -> None:
    row = scorecard_row("otter", [outcome("a", 1, result(1.0)), outcome("b", 1, result(0.2, 1.0))])

    assert row.partial == Score(value=None, low=0.6, high=1.0)
    assert row.success == Score(value=None, low=0.5, high=1.0)
    assert row.pass_at_k == Score(value=None, low=0.5, high=1.0)
    assert (row.incomplete, row.without_result) == (1, 0)


def test_pass_at_k_is_over_the_tasks_with_every_run_and_names_the_missing_ones() -> None:
    answers = [outcome("a", 1, result(0.0)), outcome("a", 2, result(1.0)), outcome("c", 1, result(0.5))]
    whole = [*answers, outcome("b", 1, result(0.5)), outcome("b", 2, result(1.0 - 1e-7))]

    row = scorecard_row("otter", whole)

    assert row.k == 2
    assert row.pass_at_k == Score(value=1.0, low=1.0, high=1.0)
    assert row.missing_answers == (("c", "answer_2.md"),)
    assert agent_summary("otter", whole)["missing_answers"] == [{"task_id": "c", "answer_name": "answer_2.md"}]
    assert scorecard_row("otter", [outcome("a", 1, result(1.0)), outcome("b", 2, result(1.0))]).pass_at_k is None


def test_answers_to_which_nothing_applies_count_in_no_figure() -> None:
    nothing = {**result(0.0), "score": {"value": None, "low": None, "high": None, "reason": "nothing_applies"}}
    known = [
        outcome("a", 1, nothing),
        outcome("b", 1, result(0.5)),
        outcome("b", 2, nothing),
        outcome("a", 2, result(0.7)),
    ]

    row, whole = scorecard_row("otter", known), full_summary("otter", known, resampled=False)

    assert row.partial == Score(value=0.6, low=0.6, high=0.6)
    assert (row.answers, row.nothing_applies, row.answers_not_judged) == (4, 2, 0)
    assert (whole["avg_score"], whole["nothing_applies"], whole["statistics"]["score"]["value"]) == (0.6, 2, 0.6)
    assert scorecard_row("otter", known[:1]).partial is None
    assert agent_summary("otter", known[:1])["avg_score"] is None


def test_cost_and_time_are_summed_and_an_unknown_price_stays_unknown() -> None:
    priced = scorecard_row("otter", [outcome("a", 1, result(1.0)), outcome("b", 1, result(1.0))])
    assert (priced.seconds, priced.usage.calls, priced.usage.input_tokens, priced.usage.usd) == (3.0, 4, 20, 0.5)

    unpriced = result(1.0, usage={"calls": 1, "usd": None})
    assert scorecard_row("otter", [outcome("a", 1, result(1.0)), outcome("b", 1, unpriced)]).usage.usd is None


def test_summary_has_the_public_keys_and_lists_answers_without_a_result() -> None:
    got = agent_summary("otter", [outcome("b", 1, None), outcome("a", 1, result(0.2, 1.0))])

    assert (got["avg_score"], got["num_tasks"], got["pass_at_1"]) == (0.2, 1, 0.0)
    assert got["num_answers"] == 2
    assert got["not_judged"] == {"answers": 2, "incomplete": 1, "without_result": 1, "leaves": 0}
    assert got["without_result"] == [{"task_id": "b", "answer_name": "answer_1.md", "error_code": "JUDGE_BUG"}]
    assert got["bounds"]["score"] == {"value": None, "low": 0.1, "high": 1.0}
    assert got["usage"]["usd"] == 0.25
