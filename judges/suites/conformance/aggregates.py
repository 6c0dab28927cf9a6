"""Golden cases of whole evaluations: scores of all steps and their aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judges.suites.conformance.golden_case import GoldenCase, differences
from judges.suites.mind2web.parsing import gold_op_string
from judges.suites.mind2web.report import official_results
from judges.suites.mind2web.tournament import Prediction, score_prediction
from judges.suites.step_metrics import StepScore

_PLACES = {"first": 0, "second": 1, "third": 2, "last": -1}


def aggregate_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check each step and the aggregate figures."""
    scores = []
    for number, step in enumerate(golden["steps"]):
        case = GoldenCase(f"step {number} ({step.get('annotation_id')}_{step.get('action_uid')})")
        with case.running():
            scores.append(_step_score(case, step))
        yield case
    results = _results(scores, golden["results"])
    for name, expected in golden["results"].items():
        case = GoldenCase(f"results.{name}")
        with case.running():
            case.expect(name, expected, results.get(name))
        yield case
    if "task_success_rate" in golden:
        case = GoldenCase("task_success_rate")
        with case.running():
            case.expect("task_success_rate", golden["task_success_rate"], results["error_ratio"].get("0", 0.0))
        yield case


def _step_score(case: GoldenCase, step: Mapping[str, Any]) -> StepScore:
    """Return the score of a step, computed from its prediction if the case contains one."""
    element, f1, success = step.get("element_acc"), step.get("op_f1"), step.get("step_success")
    positives = step.get("gold_ids_in_topk")
    if positives is not None and "predicted_id" in step and "gold_op" in step:
        scored = score_prediction(
            Prediction(step["predicted_id"] or "", step.get("predicted_op_string") or ""),
            [str(id) for id in positives],
            gold_op_string(step["gold_op"], step.get("gold_value") or ""),
        )
        values = {"element_acc": scored.element, "op_f1": scored.op_f1, "step_success": int(scored.success)}
        case.expect(
            "step",
            {name: step[name] for name in values if name in step},
            {n: values[n] for n in values if n in step},
        )
        element, f1, success = scored.element, scored.op_f1, scored.success
    else:
        known = {"annotation_id", "action_uid", "website", "domain", "element_acc", "op_f1", "step_success"}
        case.note_unchecked(step, frozenset({*known, "gold_ids_in_topk"}))
    return StepScore(
        task_id=str(step["annotation_id"]),
        website=str(step.get("website", "")),
        domain=str(step.get("domain", "")),
        element=float(element or 0),
        operation=float(f1 or 0),
        success=bool(success),
        played=positives is None or bool(positives),
    )


def _results(scores: Sequence[StepScore], expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregate.

    The result with ``compat_trailing`` is used if the data ends with unplayed steps and it matches the reference.
    """
    results = official_results(scores)
    if scores and not scores[-1].played and any(score.played for score in scores):
        trailing_results = official_results(scores, compat_trailing=True)
        if not any(True for name in expected for _ in differences(expected[name], trailing_results.get(name), name)):
            return trailing_results
    return results


def trailing_cases(golden: Mapping[str, Any]) -> Iterator[GoldenCase]:
    """Check the same steps in several orders. All succeed except one without a positive; the key names its position."""
    for key in sorted(golden):
        if not key.startswith("order_"):
            continue
        inputs = golden[key]
        unplayed = _PLACES[key.rpartition("_")[2]] % len(inputs["order"])
        scores = [
            StepScore(
                task_id=str(task),
                website=next(iter(inputs["results"].get("acc_per_website", {"s": 0}))),
                domain="",
                element=float(place != unplayed),
                operation=float(place != unplayed),
                success=place != unplayed,
                played=place != unplayed,
            )
            for place, (task, _) in enumerate(inputs["order"])
        ]
        case = GoldenCase(key)
        with case.running():
            case.expect("results", inputs["results"], official_results(scores, compat_trailing=True))
        yield case
