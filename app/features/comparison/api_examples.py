"""Response examples for the operations of this feature, computed from one small result by the serving code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.agent_summary import AnswerOutcome
from app.api.examples import EXAMPLE_ID, EXAMPLE_RESULT
from app.features.comparison.figures import full_summary
from app.features.comparison.flips import Cause, Flip, add_flips
from app.features.comparison.paired_comparison import ComparisonSide, comparison_json
from app.features.comparison.sensitivity_json import consistency_json, flips_json, order_json

_FLIP = Flip(
    task_id="yu_lineage",
    answer_name="answer_1.md",
    leaf="advisor/thesis",
    description="The thesis names her advisor",
    before="passed",
    after="failed",
    causes=((Cause.PAGE, "https://example.org/page: its text changed"),),
    result_before=f"res_{EXAMPLE_ID}",
    result_after=f"res_{EXAMPLE_ID}",
)
_OUTCOME = AnswerOutcome(task_id="yu_lineage", answer_name="answer_1.md", words=212, result=EXAMPLE_RESULT)


def examples() -> Mapping[str, Any]:
    """Return the examples by operation. The example result has no tree, because a tree would be too long."""
    monday, tuesday = _side("my-agent@monday"), _side("my-agent@tuesday")
    comparison = comparison_json(monday, [tuesday])
    add_flips(comparison["comparisons"][0], [_FLIP], at_most=1)
    consistency = {"task_id": "yu_lineage", **consistency_json([EXAMPLE_RESULT]), "older_left_out": False}
    return {
        "GET /v1/agents/{agent}/summary": dict(full_summary("my-agent", [_OUTCOME])),
        "GET /v1/leaderboard": {
            "items": [{"agent_name": "my-agent", "avg_score": 0.75, "num_answers": 1}],
            "next_cursor": None,
        },
        "GET /v1/compare": comparison,
        "GET /v1/compare/flips": {"items": [_FLIP.json()], "next_cursor": None},
        "GET /v1/compare/sensitivity": order_json(_side("my-agent"), ComparisonSide(name="another", outcomes=[])),
        "GET /v1/results/{result_id}/sensitivity": flips_json(EXAMPLE_RESULT),
        "GET /v1/tasks/{task_id}/consistency": consistency,
    }


def _side(name: str) -> ComparisonSide:
    return ComparisonSide(name=name, outcomes=[_OUTCOME])
