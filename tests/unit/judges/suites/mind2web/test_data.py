"""Published JSON files and rows: file lookup and errors for damaged data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.mind2web.data import Candidate, find_split
from tests.fakes.mind2web import action, items, nine_steps, write_split


def test_steps_have_the_fields_of_their_task(tmp_path: Path):
    steps = list(find_split(write_split(tmp_path, nine_steps()), "test_task").steps())
    assert [step.sample_id for step in steps[:3]] == ["T1_a", "T1_b", "T2_a"]
    assert [step.position for step in steps] == list(range(9))
    second = steps[1]
    assert (second.website, second.domain, second.task) == ("alpha", "Travel", "Do what T1 asks for")
    assert (second.op, second.value, second.number) == ("TYPE", "boston ma", 1)
    assert second.history == ("[button]  a -> CLICK",)
    [positive] = second.positives
    assert positive._replace(attributes="") == Candidate("1", "button", "10,20,100,18")
    assert json.loads(positive.attributes)["type"] == "button"
    assert len(second.negatives) == 6


def error_after(tmp_path: Path, change: Any) -> str:
    """Return the error for a file after ``change`` of the second action of the first task."""
    tasks = nine_steps()
    change(tasks[0], tasks[0]["actions"][1])
    with pytest.raises(DataUnreadable) as caught:
        list(find_split(write_split(tmp_path, tasks, files=1), "test_task").steps())
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task, action: action.pop("action_uid"), "task T1, action 1, field action_uid: is missing"),
        (
            lambda task, action: action["operation"].update(op="HOVER"),
            "field operation, field op: must be one of CLICK",
        ),
        (
            lambda task, action: action["neg_candidates"][2].update(backend_node_id=7),
            "action 1 (b), field neg_candidates.2.backend_node_id: must be a non-empty string",
        ),
        (
            lambda task, action: action.update(cleaned_html="", raw_html=""),
            "field cleaned_html: must be a non-empty string, not an empty string",
        ),
        (lambda task, action: task.pop("annotation_id"), "task 0, field annotation_id: is missing"),
        (
            lambda task, action: task.update(action_reprs=None),
            "field action_reprs: must be a list of strings, not None",
        ),
    ],
)
def test_error_for_damaged_data_names_file_task_action_and_field(tmp_path: Path, change: Any, message: str):
    found = error_after(tmp_path, change)
    assert found.startswith("test_task_0.json, task ")
    assert message in found


def multimodal_row(index: int) -> dict[str, Any]:
    """Return a step as a row of Multimodal-Mind2Web, which nests JSON strings in JSON strings."""
    one = action(f"u{index}", items("type x"), op="TYPE", value="x")
    return {
        "action_uid": one["action_uid"],
        "raw_html": "",
        "cleaned_html": one["cleaned_html"],
        "operation": json.dumps(one["operation"]),
        "pos_candidates": [json.dumps(pos_candidate) for pos_candidate in one["pos_candidates"]],
        "neg_candidates": [json.dumps(neg_candidate) for neg_candidate in one["neg_candidates"]],
        "website": "alpha",
        "domain": "Travel",
        "subdomain": "Other",
        "annotation_id": "T",
        "confirmed_task": "Do it",
        "action_reprs": ["first", "second", "third"],
        "target_action_index": str(index),
        "target_action_reprs": "second",
    }


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_multimodal_rows_are_read_as_steps(tmp_path: Path, suffix: str):
    rows = [multimodal_row(1), multimodal_row(2)]
    file = tmp_path / f"test_website{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    split = find_split(tmp_path, "test_website")
    first, second = split.steps()
    assert (first.sample_id, first.number, first.history) == ("T_u1", 1, ("first",))
    assert (second.position, second.op, second.value) == (1, "TYPE", "x")
    assert first.positives[0].box == "10,20,100,18"
