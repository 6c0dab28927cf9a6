from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judges.suites.errors import DataMissing, SuiteError
from judges.suites.mind2web.tournament import EMPTY_PREDICTION, Prediction, RecordedRounds, read_predictions

PROMPT = ["<html/>", "question", [["1", "<a id=0>"], ["2", "<a id=1>"]]]


def write_predictions(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "predictions.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_published_predictions_are_read(tmp_path: Path):
    found = read_predictions(write_predictions(tmp_path, [["T_a", "7", "TYPE x"], ["T_b", "", ""]]))
    assert found == {"T_a": Prediction("7", "TYPE x"), "T_b": EMPTY_PREDICTION}


def test_operation_without_an_element_is_an_empty_prediction(tmp_path: Path):
    assert read_predictions(write_predictions(tmp_path, [["T_a", "", "CLICK "]])) == {"T_a": EMPTY_PREDICTION}


def outputs(tmp_path: Path, *raws: str, candidates: int) -> Prediction:
    """Return the prediction of published outputs with two candidates per round."""
    rounds = [[["1", "2"], PROMPT, raw] for raw in raws]
    found = read_predictions(write_predictions(tmp_path, [["T_a", rounds]]))["T_a"]
    assert isinstance(found, RecordedRounds)
    return found.prediction(candidates)


def test_raw_replies_of_published_outputs_are_parsed_again(tmp_path: Path):
    assert outputs(tmp_path, "Answer: C.\nAction: TYPE\nValue: x", candidates=2) == Prediction("2", "TYPE x")
    assert outputs(tmp_path, "Answer: A.", candidates=2) == EMPTY_PREDICTION
    assert outputs(tmp_path, "Answer: B.\nAction: CLICK", "Answer: F.", candidates=4) == EMPTY_PREDICTION
    # The pick was rejected: two candidates and a pick, all of them asked about.
    assert outputs(tmp_path, "Answer: B.\nAction: CLICK", "Answer: A.", candidates=3) == EMPTY_PREDICTION
    # The pick is the only one left, without confirmation.
    assert outputs(tmp_path, "Answer: B.\nAction: CLICK", "Answer: A.", candidates=4) == Prediction("1", "CLICK ")


def test_reports_of_this_project_are_predictions_too(tmp_path: Path):
    own = [
        {"id": "T_a", "status": "scored", "prediction": ["7", "CLICK "]},
        {"id": "T_b", "status": "not_judged", "prediction": None},
        {"id": "T_c", "status": "scored", "prediction": ["", "CLICK "]},
    ]
    assert read_predictions(write_predictions(tmp_path, own)) == {
        "T_a": Prediction("7", "CLICK "),
        "T_c": Prediction("", "CLICK "),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"T_a": "7"}, "must be a JSON list"),
        ("[[", "unexpected end of file"),
        ([["T_a"]], r"entry 0: must be \[sample_id, node_id, op_string\]"),
        ([["T_a", 7, "CLICK"]], "entry 0: node_id and op_string must be strings"),
        ([["T_a", "7", None]], "entry 0: node_id and op_string must be strings"),
        ([["T_a", "7", ""], ["T_a", "8", ""]], "entry 1: duplicate prediction for step 'T_a'"),
        ([["T_a", [["1"]]]], "entry 0, round 0"),
        ([["T_a", [[["1"], ["page"], "raw"]]]], "entry 0, round 0: must contain"),
        ([["T_a", [[[1], PROMPT, "raw"]]]], "candidate_ids: must be a list of ids"),
        ([{"prediction": ["7", ""]}], "entry 0: has no id"),
        ([{"id": "T_a", "status": "scored", "prediction": "7"}], "entry 0: prediction must be"),
        ([{"id": "T_a", "status": ["scored"], "prediction": "7"}], "entry 0: prediction must be"),
    ],
)
def test_other_shapes_are_rejected(tmp_path: Path, content: Any, message: str):
    with pytest.raises(SuiteError, match=message):
        read_predictions(write_predictions(tmp_path, content))


def test_missing_file_is_named_in_the_error(tmp_path: Path):
    with pytest.raises(DataMissing, match="nowhere"):
        read_predictions(tmp_path / "nowhere.json")
