"""Published JSON files and rows: file lookup and errors for damaged data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.mind2web.data import Candidate, find_split
from tests.fakes.mind2web import action, items, nine_steps, task, write_split


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


@pytest.mark.parametrize("root", ["", "test_task", "test_task/test_task_0.json"])
def test_data_can_be_a_file_a_split_folder_or_a_parent_folder(tmp_path: Path, root: str):
    write_split(tmp_path, nine_steps(), files=1)
    write_split(tmp_path, nine_steps()[:1], split="train", files=1)
    split = find_split(tmp_path / root, "test_task")
    assert [file.name for file in split.files] == ["test_task_0.json"]
    assert len(list(split.steps())) == 9


def test_files_named_after_the_split_can_be_next_to_others(tmp_path: Path):
    for name in ("my_test_task_10.json", "my_test_task_2.json", "train_0.json"):
        (tmp_path / name).write_text("[]")
    assert [file.name for file in find_split(tmp_path, "test_task").files] == [
        "my_test_task_2.json",
        "my_test_task_10.json",
    ]


def test_folder_with_other_names_is_accepted_unless_they_name_another_split(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part.json").write_text("[]")
    assert [file.name for file in find_split(tmp_path / "mine", "test_task").files] == ["part.json"]
    (tmp_path / "mine" / "train_0.json").write_text("[]")
    with pytest.raises(DataMissing):
        find_split(tmp_path / "mine", "test_task")


def test_error_for_a_missing_split_lists_the_existing_ones(tmp_path: Path):
    write_split(tmp_path, [], split="train")
    with pytest.raises(DataMissing, match=r"no file of split 'test_task'.*found: train"):
        find_split(tmp_path, "test_task")
    with pytest.raises(DataMissing, match="does not exist"):
        find_split(tmp_path / "nowhere", "test_task")


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
        (lambda task, action: action.pop("operation"), "task T1, action 1 (b), field operation: is missing"),
        (
            lambda task, action: action["operation"].update(op="HOVER"),
            "field operation, field op: must be one of CLICK",
        ),
        (
            lambda task, action: action["operation"].update(value=5),
            "field operation, field value: must be a string, not 5",
        ),
        (lambda task, action: action.update(pos_candidates=None), "field pos_candidates: must be a list"),
        (
            lambda task, action: action["neg_candidates"][2].update(backend_node_id=7),
            "action 1 (b), field neg_candidates.2.backend_node_id: must be a non-empty string",
        ),
        (lambda task, action: action["neg_candidates"][0].update(attributes=[]), "neg_candidates.0.attributes"),
        (lambda task, action: action["neg_candidates"][0].update(rank="first"), "neg_candidates.0.rank"),
        (
            lambda task, action: action.update(cleaned_html="", raw_html=""),
            "field cleaned_html: must be a non-empty string, not an empty string",
        ),
        (lambda task, action: task.pop("annotation_id"), "task 0, field annotation_id: is missing"),
        (lambda task, action: task.update(action_reprs="x"), "task T1, field action_reprs"),
        (
            lambda task, action: task.update(action_reprs=None),
            "field action_reprs: must be a list of strings, not None",
        ),
        (lambda task, action: task.update(action_reprs=[None]), "must be a list of strings; item 0 is None"),
        (lambda task, action: action["neg_candidates"][0].update(score="high"), "neg_candidates.0.score"),
        (lambda task, action: task.update(actions={}), "task T1, field actions: must be a list"),
    ],
)
def test_error_for_damaged_data_names_file_task_action_and_field(tmp_path: Path, change: Any, message: str):
    found = error_after(tmp_path, change)
    assert found.startswith("test_task_0.json, task ")
    assert message in found


@pytest.mark.parametrize(
    ("written", "message"),
    [("{}", "must be a JSON list"), ("[[1]]", "task 0: must be an object"), ("[{", "not well-formed")],
)
def test_file_without_tasks_is_rejected(tmp_path: Path, written: str, message: str):
    file = tmp_path / "test_task.json"
    file.write_text(written)
    with pytest.raises(DataUnreadable, match=message):
        list(find_split(file, "test_task").steps())


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


def test_raw_page_is_used_if_there_is_no_cleaned_one(tmp_path: Path):
    one = action("a", items("click")) | {"raw_html": "<p>raw", "cleaned_html": None}
    [step] = find_split(write_split(tmp_path, [task("T", [one])], files=1), "test_task").steps()
    assert step.page == "<p>raw"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (nine_steps()[0], "row 0: is a whole task of Mind2Web, as in the Parquet files that the hub makes of it"),
        (
            {"task_id": "T", "step": 0, "prompt_0": "[]"},
            "row 0: is a row of Multimodal-Mind2Web~: use it with `assay suites mm",
        ),
        (
            multimodal_row(1) | {"operation": '{"op": "HOVER"}'},
            "field op: must be one of CLICK, SELECT, TYPE, not 'HOVER'",
        ),
        (multimodal_row(1) | {"action_reprs": None}, "field action_reprs: must be a list of strings, not None"),
    ],
)
def test_rows_of_another_layout_are_named(tmp_path: Path, row: dict[str, Any], message: str):
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "test_task.parquet")
    (tmp_path / "test_task.jsonl").write_text(json.dumps(row))
    for suffix in (".parquet", ".jsonl"):
        with pytest.raises(DataUnreadable) as caught:
            list(find_split(tmp_path / f"test_task{suffix}", "test_task").steps())
        assert message in str(caught.value)
