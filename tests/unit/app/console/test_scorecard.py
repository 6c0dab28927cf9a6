from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from app.console.scorecard import answer_table, scorecard
from judges.agent_figures import AnswerOutcome, scorecard_row, summary_fields
from rubrics.verdict import Outcome
from tests.fakes.judged import FAILED, group, leaf, result_of, rubric_of


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


def test_penalty_that_applies_is_no_passed_check_and_an_avoided_one_is() -> None:
    met, unmet = leaf("met"), leaf("unmet", FAILED)
    rubric = rubric_of(leaf("a"), group("mistakes", met, unmet, weight=-1.0), leaf("slip", Outcome.PASSED, weight=-3.0))
    result = result_of(rubric)
    for known in (result, summary_fields(result)):
        one = AnswerOutcome(task_id="bridge", answer_name="answer_1.md", result=known)
        assert " 2/4 " in printed(answer_table([("otter", one)]))
