from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from app.agent_summary import AnswerOutcome, scorecard_row, summary_fields
from app.console.scorecard import answer_table, finished_line, scorecard


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


def test_scorecard_has_every_figure_and_fits_80_columns() -> None:
    text = printed(scorecard([scorecard_row("otter", [outcome(0.5, 0.75), outcome(1.0, 1.0, "tower")])]))

    line = next(line for line in text.splitlines() if line.strip().startswith("otter"))
    assert line.split() == ["otter", "0.75-0.88", "0.50", "0.50", "1", "2", "4.5"]
    assert "pass@1" in text
    assert max(map(len, text.splitlines())) <= 80


def test_answers_are_listed_with_their_check_counts() -> None:
    text = printed(answer_table([("otter", outcome(0.5, 0.75))]))

    line = next(line for line in text.splitlines() if "0.50-0.75" in line)
    assert line.split() == ["otter", "bridge", "answer_1", "0.50-0.75", "0.50", "2/4", "1", "2.2"]
    assert "final" in text
    assert max(map(len, text.splitlines())) <= 80


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
