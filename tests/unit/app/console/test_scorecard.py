from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from app.agent_summary import AnswerOutcome, scorecard_row, summary_fields
from app.console.scorecard import answer_table, finished_line, score_text, scorecard
from rubrics.scoring import Score


def printed(renderable: Any, width: int = 80) -> str:
    written = StringIO()
    Console(file=written, width=width).print(renderable)
    return written.getvalue()


def outcome(low: float, high: float, task_id: str = "bridge") -> AnswerOutcome:
    tree = {
        "children": [
            {"outcome": "passed", "children": []},
            {"outcome": "failed", "children": []},
            {"outcome": "passed", "children": []},
            {"outcome": "not_judged", "children": []},
        ]
    }
    return AnswerOutcome(
        task_id=task_id,
        answer_name="answer_1.md",
        result={
            "status": "complete" if low == high else "incomplete",
            "score": {"value": low if low == high else None, "low": low, "high": high},
            "final_score": low,
            "timing": {"total_s": 2.25},
            "eval_breakdown": [{"info": [], "verification_tree": tree}],
        },
    )


def test_open_score_is_shown_by_its_bounds() -> None:
    assert score_text(Score(value=0.5, low=0.5, high=0.5)) == "0.50"
    assert score_text(Score(value=None, low=0.25, high=1.0)) == "0.25-1.00"
    assert score_text(None) == "-"


def test_scorecard_has_every_figure_and_fits_80_columns() -> None:
    text = printed(scorecard([scorecard_row("otter", [outcome(0.5, 0.75), outcome(1.0, 1.0, "tower")])]))

    line = next(line for line in text.splitlines() if line.strip().startswith("otter"))
    assert line.split() == ["otter", "0.75-0.88", "0.50", "0.50", "1", "2", "4.5"]
    assert "pass@1" in text
    assert max(map(len, text.splitlines())) <= 80


def test_cost_is_shown_only_if_there_is_one() -> None:
    free = outcome(1.0, 1.0)
    assert free.result is not None
    paid = AnswerOutcome(task_id="t", answer_name="a.md", result={**free.result, "usage": {"usd": 0.0123}})
    unpriced = AnswerOutcome(task_id="t", answer_name="a.md", result={**free.result, "usage": {"usd": None}})

    assert "usd" not in printed(scorecard([scorecard_row("otter", [free])]))
    assert "0.0123" in printed(scorecard([scorecard_row("otter", [paid])]))
    assert "unknown" in printed(scorecard([scorecard_row("otter", [unpriced])]))


def test_answers_are_listed_with_their_check_counts() -> None:
    text = printed(answer_table([("otter", outcome(0.5, 0.75))]))

    line = next(line for line in text.splitlines() if "0.50-0.75" in line)
    assert line.split() == ["otter", "bridge", "answer_1", "0.50-0.75", "0.50", "2/4", "1", "2.2"]
    assert "final" in text
    assert max(map(len, text.splitlines())) <= 80


def test_names_of_the_demo_are_not_broken_at_80_columns() -> None:
    text = printed(answer_table([("demo-inventive", outcome(0.5, 0.75, "velm_directors"))]))

    assert "demo-inventive  velm_directors  answer_1  0.50-0.75" in text


def test_compatible_score_is_left_out_if_every_leaf_was_judged() -> None:
    tree = {"children": [{"outcome": "passed", "children": []}]}
    certain = outcome(1.0, 1.0)
    assert certain.result is not None
    certain.result["eval_breakdown"][0]["verification_tree"] = tree

    text = printed(answer_table([("otter", certain)]))
    assert "final" not in text
    line = next(line for line in text.splitlines() if "otter" in line)
    assert line.split() == ["otter", "bridge", "answer_1", "1.00", "1/1", "2.2"]


def test_result_without_a_tree_shows_no_check_counts() -> None:
    judged = outcome(0.75, 0.75, "check")
    assert judged.result is not None
    checked = replace(judged, result={key: judged.result[key] for key in ("status", "score", "final_score", "timing")})

    line = next(line for line in printed(answer_table([("check", checked)])).splitlines() if "0.75" in line)
    assert line.split() == ["check", "check", "answer_1", "0.75", "-", "2.2"]


def test_answer_without_a_result_shows_its_error() -> None:
    failed = AnswerOutcome(task_id="bridge", answer_name="answer_1.md", error_code="JUDGE_BUG")

    assert "JUDGE_BUG" in printed(answer_table([("otter", failed)]))
    assert "JUDGE_BUG" in finished_line("otter bridge", failed)


def test_summary_fields_give_the_same_tables() -> None:
    whole = [outcome(0.5, 0.5), outcome(0.25, 1.0)]
    kept = [replace(one, result=summary_fields(one.result or {})) for one in whole]
    tables = [printed(answer_table(("otter", one) for one in each)) for each in (whole, kept)]
    rows = [scorecard_row("otter", each) for each in (whole, kept)]
    assert (tables[0], rows[0]) == (tables[1], rows[1])
