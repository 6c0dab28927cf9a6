from __future__ import annotations

from typing import Any

from judges.analysis.task_tests.leaves import not_judged, observed_run, scores_json

FIELDS = {"unmoved": ["a"]}


def leaf(key: str, outcome: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "desc": key, "children": [], "outcome": outcome, "claim": f"{key} is so", **fields}


def run(low: float, high: float, *leaves: dict[str, Any]) -> Any:
    tree = {"id": "root", "desc": "task", "strategy": "parallel", "children": list(leaves)}
    score = {"value": low if low == high else None, "low": low, "high": high}
    return observed_run({"score": score, "pages": [], "usage": {}, "eval_breakdown": [{"verification_tree": tree}]})


def codes(report: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(each["code"], [leaf["leaf"] for leaf in each["leaves"]]) for each in report["findings"]]


def scored(gold: Any, empty: Any) -> dict[str, Any]:
    return scores_json(gold, empty, None, fields=FIELDS)


def test_leaves_that_are_wrong_are_named() -> None:
    gold = run(0.5, 0.5, leaf("a", "passed"), leaf("b", "failed"))
    report = scored(gold, run(0.5, 0.5, leaf("a", "passed"), leaf("b", "failed")))
    assert codes(report) == [("gold_fails", ["b"]), ("empty_answer_scores", ["a"]), ("never_flips", ["a"])]
    assert report["findings"][0]["leaves"][0]["claim"] == "b is so"


def test_fault_is_not_a_wrong_score() -> None:
    report = scored(run(0, 1, leaf("a", "not_judged")), run(0, 1, leaf("a", "not_judged")))
    assert report["findings"] == []
    assert not_judged(report)
    assert [each["leaf"] for each in report["gold"]["not_judged"]] == ["a"]


def test_claim_that_the_empty_answer_changes_can_flip() -> None:
    gold, skipped = run(1, 1, leaf("a", "passed")), run(0, 0, leaf("a", "skipped"))
    assert codes(scored(gold, run(0, 0, leaf("a", "failed")))) == []
    assert codes(scored(gold, skipped)) == [("never_flips", ["a"])]


def test_penalty_that_applies_is_wrong_and_an_avoided_one_is_not() -> None:
    slips = leaf("p", "passed", weight=-1), leaf("q", "failed", weight=-1)
    wrong = run(0.5, 0.5, leaf("a", "passed"), *slips)
    report = scored(wrong, wrong)
    assert codes(report)[:2] == [("gold_fails", ["p"]), ("empty_answer_scores", ["a"])]
    assert (report["gold"]["passed"], report["findings"][0]["leaves"][0]["outcome"]) == (2, "applies")
