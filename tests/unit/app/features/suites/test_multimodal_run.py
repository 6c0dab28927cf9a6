"""Figures of a Multimodal-Mind2Web~ run."""

import json
from pathlib import Path

import pytest

from app.features.suites.multimodal import TildeInput, TildeOptions, figures, read_input
from judges.suites.errors import DataMissing
from judges.suites.questions import request_params


@pytest.mark.parametrize("named", ["gpt-6-luna", "openai/gpt-6-luna", "azure:gpt-6-luna"])
def test_parameters_depend_on_the_model_and_not_on_the_form_of_its_name(named: str, tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.touch()
    nothing = TildeInput(data=rows, split=None, splits=(), rows=(), row_count=0, skipped={}, digest="")
    found = figures(TildeOptions(data=nothing.data, model=named), nothing, [])
    assert (found["model"], found["params"]) == (named, dict(request_params("gpt-6-luna", max_tokens=500)))
    assert request_params("gpt-6-luna", max_tokens=500) != request_params("gpt-4o", max_tokens=500)


def test_data_without_a_valid_row_are_refused_and_not_scored_zero(tmp_path: Path):
    row = {"task_id": "t", "step": 0, "candidates": [], "target_elements": [], "target_op": "CLICK", "is_valid": False}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataMissing, match="is_valid is false in all 1 rows"):
        read_input(tmp_path / "rows.jsonl")
