"""Figures of a Multimodal-Mind2Web~ run."""

import json
from pathlib import Path

import pytest

from app.features.suites.mm_mind2web import MultimodalRun
from app.features.suites.run_options import MultimodalRunIn
from app.settings import load_settings
from judges.suites.errors import SuiteError
from judges.suites.questions import request_params

ROW = {"task_id": "t", "step": 0, "candidates": [], "target_elements": [], "target_op": "CLICK", "is_valid": True}
PROMPTS = {name: [{"role": "user", "content": "Choose."}] for name in ("prompt_0", "prompt_1")}


def run(folder: Path, model: str, **row: object) -> MultimodalRun:
    (folder / "rows.jsonl").write_text(json.dumps(ROW | PROMPTS | row))
    options = MultimodalRunIn(data=str(folder / "rows.jsonl"))
    return MultimodalRun(options, Path, load_settings(data_dir=folder, model=model))


@pytest.mark.parametrize("named", ["gpt-6-luna", "openai/gpt-6-luna", "azure:gpt-6-luna"])
def test_parameters_depend_on_the_model_and_not_on_the_form_of_its_name(named: str, tmp_path: Path):
    found = run(tmp_path, named).figures([])
    assert (found["model"], found["params"]) == (named, dict(request_params("gpt-6-luna", max_tokens=500)))
    assert request_params("gpt-6-luna", max_tokens=500) != request_params("gpt-4o", max_tokens=500)


def test_data_without_a_valid_row_are_refused_and_not_scored_zero(tmp_path: Path):
    with pytest.raises(SuiteError, match="is_valid is false in all 1 rows"):
        run(tmp_path, "openai/gpt-4o", is_valid=False)
