from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.multimodal.dialogue import read_predictions

ENTRIES = [
    {"task_id": "t1", "step": 0, "raw_output": "ELEMENT: B\nACTION: CLICK\nVALUE: None"},
    {"task_id": "t1", "step": "1", "element": "C", "action": "TYPE", "value": "rome"},
    {"task_id": "t2", "step": 0, "status": "not_judged", "element": None},
]


@pytest.mark.parametrize("name", ["given.json", "given.jsonl"])
def test_answers_can_be_raw_or_parsed(name: str, tmp_path: Path):
    path = tmp_path / name
    written = json.dumps(ENTRIES) if name.endswith("json") else "\n".join(map(json.dumps, ENTRIES))
    path.write_text(written)
    given = read_predictions(path)
    assert sorted(given) == ["t1:0", "t1:1"]
    assert (given["t1:0"].reply.element, given["t1:0"].reply.action) == ("B", "CLICK")
    assert (given["t1:1"].reply.value, given["t1:1"].raw) == ("rome", None)


def test_answer_can_have_no_element(tmp_path: Path):
    path = tmp_path / "given.json"
    path.write_text(json.dumps([{"task_id": "t", "step": 0, "element": None, "action": None}]))
    reply = read_predictions(path)["t:0"].reply
    assert (reply.element, reply.action, reply.value) == ("Invalid", "None", "")


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{", "not valid JSON"),
        ("{}", "list of predictions"),
        ("[5]", "entry 0: must be an object"),
        ('[{"task_id": "t"}]', "entry 0, field step"),
        ('[{"task_id": "t", "step": 0}]', "field raw_output"),
        ('[{"task_id": "t", "step": 0, "element": 5}]', "field element"),
        ('[{"task_id": "t", "step": 0, "element": "A"}, {"task_id": "t", "step": 0, "element": "B"}]', "second answer"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_invalid_entry_is_named_in_the_error(written: str, problem: str, tmp_path: Path):
    path = tmp_path / "given.json"
    path.write_text(written)
    with pytest.raises(DataUnreadable, match=problem):
        read_predictions(path)


def test_missing_file_raises(tmp_path: Path):
    with pytest.raises(DataMissing, match="does not exist"):
        read_predictions(tmp_path / "none.json")
