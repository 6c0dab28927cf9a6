"""Text of ``assay bundle verify`` and ``assay bundle replay``."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.bundles.cli import _print_report
from app.features.bundles.verification import CheckedResult, Report

OPEN = {"value": None, "low": 0.75, "high": 1.0}
FAILED = {"value": 0.0, "low": 0.0, "high": 0.0}


@pytest.mark.parametrize(
    ("figures", "with_overrides", "text"),
    [
        ({"final_score": 0.75, "score": OPEN}, None, "0.75 to 1"),
        ({"final_score": 0.75, "score": OPEN}, {"final_score": 0.0, "score": FAILED}, "0.75 to 1, 0 with overrides"),
        ({"final_score": 0.5, "score": None}, None, "0.5"),  # a result of the public toolkit
        ({"final_score": None, "score": None}, None, "-"),
    ],
)
def test_score_is_shown_with_its_bounds(
    figures: dict[str, Any], with_overrides: dict[str, Any] | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = CheckedResult(
        result_id="r", task_id="pond", answer_name="b.md", figures=figures, with_overrides=with_overrides
    )
    _print_report(Report(files=1, bytes=1, problems=(), results=(result,)))
    assert capsys.readouterr().out == f"equal  pond b.md  score {text}\n"
