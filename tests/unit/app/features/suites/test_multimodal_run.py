"""Figures of a Multimodal-Mind2Web~ run."""

from pathlib import Path

import pytest

from app.features.suites.multimodal import TildeInput, TildeOptions, figures
from judges.suites.multimodal.protocol import request_params


@pytest.mark.parametrize("named", ["gpt-6-luna", "openai/gpt-6-luna", "azure:gpt-6-luna"])
def test_parameters_depend_on_the_model_and_not_on_the_form_of_its_name(named: str, tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.touch()
    nothing = TildeInput(data=rows, split=None, splits=(), rows=(), row_count=0, skipped={}, digest="")
    found = figures(TildeOptions(data=nothing.data, model=named), nothing, [])
    assert (found["model"], found["params"]) == (named, dict(request_params("gpt-6-luna")))
    assert request_params("gpt-6-luna") != request_params("gpt-4o")
