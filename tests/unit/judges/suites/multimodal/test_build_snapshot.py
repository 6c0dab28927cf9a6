from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.features.suites.multimodal import read_input
from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.multimodal.row_files import read_rows
from judges.suites.multimodal.snapshot import SamplingOptions, SnapshotUnwritable, build_snapshot
from tests.fakes.multimodal import STEPS, page, source_row, write_rows

DRAW = SamplingOptions(distractors=3)


def build(source: Path, out: Path, *, split: str | None = None, draw: SamplingOptions = DRAW, raw: Path | None = None):
    return build_snapshot(source, out, draw, split=split, raw=raw, watch=lambda rows: None)


def source(folder: Path, kind: str = "parquet") -> Path:
    return write_rows(folder / f"test_website-00000.{kind}", STEPS)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_same_rows_give_the_same_bytes(kind: str, tmp_path: Path):
    made = [tmp_path / f"{n}.{kind}" for n in range(3)]
    build(source(tmp_path), made[0])
    build(source(tmp_path), made[1])
    build(source(tmp_path, "jsonl"), made[2])
    assert made[0].read_bytes() == made[1].read_bytes() == made[2].read_bytes()


def test_parquet_and_json_lines_contain_the_same_rows(tmp_path: Path):
    made = []
    for kind in ("parquet", "jsonl"):
        build(source(tmp_path), tmp_path / f"out.{kind}")
        made.append([row.values for row in read_rows(tmp_path / f"out.{kind}")])
    assert made[0] == made[1]


def test_rows_are_counted_by_validity(tmp_path: Path):
    counted = build(source(tmp_path), tmp_path / "out.parquet")
    assert counted == {
        "rows": 7,
        "valid": 5,
        "without_positive": 1,
        "without_screenshot": 1,
        "without_raw_page": 0,
        "other_splits": 0,
        "tasks": 4,
        "distractors": 3,
        "seed": 42,
    }


def test_split_is_taken_from_the_file_name_or_the_row(tmp_path: Path):
    build(source(tmp_path), tmp_path / "out.jsonl")
    assert {row.values["split"] for row in read_rows(tmp_path / "out.jsonl")} == {"test_website"}
    rows = write_rows(tmp_path / "mine.jsonl", [{**source_row("t1", 0, "CLICK"), "split": "mine"}])
    build(rows, tmp_path / "out.jsonl")
    assert {row.values["split"] for row in read_rows(tmp_path / "out.jsonl")} == {"mine"}


def test_only_rows_of_the_wanted_split_are_built(tmp_path: Path):
    shards = tmp_path / "data"
    shards.mkdir()
    write_rows(shards / "test_website-00000-of-00002-0a1b.parquet", STEPS[:3])
    write_rows(shards / "test_task-00000-of-00001-9f.parquet", STEPS[3:])
    counted = build(shards, tmp_path / "out.jsonl", split="test_task")
    assert (counted["rows"], counted["other_splits"]) == (4, 3)
    assert {(row.values["task_id"], row.values["split"]) for row in read_rows(tmp_path / "out.jsonl")} == {
        ("t2", "test_task"), ("t3", "test_task"), ("t4", "test_task"),
    }  # fmt: skip
    with pytest.raises(DataMissing, match="no row of the split test_domain; existing splits: test_task, test_website"):
        build(shards, tmp_path / "none.jsonl", split="test_domain")
    assert not (tmp_path / "none.jsonl").exists()


@pytest.mark.parametrize("name", ["0000.parquet", "constrained.parquet", "retrain-0.jsonl"])
@pytest.mark.parametrize("split", [None, "test_task"])
def test_file_of_an_unknown_split_is_refused(tmp_path: Path, name: str, split: str | None):
    rows = write_rows(tmp_path / name, STEPS[:1])
    with pytest.raises(DataUnreadable, match="row 0: has no split: name the file like"):
        build(rows, tmp_path / "out.jsonl", split=split)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operation": '{"op": "HOVER", "value": ""}'}, "field operation, field op: must be one of CLICK"),
        ({"action_reprs": None}, "field action_reprs: must be a list of strings, not None"),
        (
            {"neg_candidates": ['{"tag": "text", "backend_node_id": "111", "attributes": "{}"}']},
            "candidate '111' is a <text> element",
        ),
    ],
)
def test_damaged_step_is_an_error_with_its_row(tmp_path: Path, change: dict[str, object], message: str):
    rows = write_rows(tmp_path / "test_website.jsonl", [source_row("t1", 0, "CLICK") | change])
    with pytest.raises(DataUnreadable) as caught:
        build(rows, tmp_path / "out.jsonl")
    assert "test_website.jsonl, row 0" in str(caught.value)
    assert message in str(caught.value)


def test_text_that_parquet_cannot_store_is_an_error_with_its_row(tmp_path: Path):
    rows = write_rows(tmp_path / "test_website.jsonl", [STEPS[0], STEPS[1] | {"website": "\ud800"}])
    with pytest.raises(DataUnreadable, match=r"test_website\.jsonl, row 1: .*\.jsonl file"):
        build(rows, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    assert build(rows, tmp_path / "out.jsonl")["rows"] == 2


def test_error_leaves_no_file(tmp_path: Path):
    rows = write_rows(tmp_path / "train.jsonl", [STEPS[0], source_row("t1", 0, "CLICK")])
    with pytest.raises(DataUnreadable, match=r"train\.jsonl, row 1: repeats step t1:0"):
        build(rows, tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl"]


def test_failed_build_keeps_an_earlier_file(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    with pytest.raises(DataUnreadable):
        build(write_rows(tmp_path / "train.jsonl", [STEPS[0], STEPS[0]]), out)
    assert out.read_text() == "before"


@pytest.mark.parametrize("name", ["out.csv", "out", "file/out.parquet"])
def test_file_that_cannot_be_written_is_named(name: str, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SnapshotUnwritable):
        build(source(tmp_path), tmp_path / name)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_is_valid_is_a_string_as_on_the_dataset_card(tmp_path: Path, kind: str):
    build(source(tmp_path), tmp_path / f"out.{kind}")
    assert [row.values["is_valid"] for row in read_rows(tmp_path / f"out.{kind}")] == [
        "True", "True", "False", "True", "True", "False", "True",
    ]  # fmt: skip
    assert read_input(tmp_path / f"out.{kind}").skipped == {"is_valid_false": 2}


def dump_task(id: str, **pages: object) -> dict[str, object]:
    actions = [{"action_uid": uid.replace("_", "-"), "raw_html": page} for uid, page in pages.items()]
    return {"annotation_id": id, "actions": actions}


@pytest.mark.parametrize("is_folder", [True, False])
def test_raw_pages_are_joined_from_the_original_dump(tmp_path: Path, is_folder: bool):
    tasks = [
        dump_task("t9", x=1),
        dump_task("t1", t1_1="<raw 11>", t1_0="<raw 10>", t1_2=""),
        dump_task("t3", t3_0="<raw 30>"),
    ]
    raw = tmp_path / "dump" / "test_website"
    raw.mkdir(parents=True)
    file = raw / "test_website_0.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(tasks).encode())
    counted = build(source(tmp_path), tmp_path / "out.jsonl", raw=tmp_path / "dump" if is_folder else file)
    built = {(row.values["task_id"], row.values["step"]): row.values for row in read_rows(tmp_path / "out.jsonl")}
    raw_pages = [values["raw_html"] for values in built.values()]
    assert raw_pages == ["<raw 10>", "<raw 11>", page(), page(), page(), "<raw 30>", page()]
    assert counted["without_raw_page"] == 4
    assert "bnid" in built["t1", 0]["cleaned_html"]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{}", "must be a JSON list"),
        ('["a"]', "must be a JSON list of objects"),
        ("[[]]", "task 0: must be an object"),
        ("[{}]", "task 0, field annotation_id: is missing"),
        ('[{"annotation_id": "t1"}]', "task 0, field actions: is missing"),
        ('[{"annotation_id": "t1", "actions": [[]]}]', "task t1, action 0: must be an object"),
        ('[{"annotation_id": "t1", "actions": [{"action_uid": "t1-0", "raw_html": 5}]}]', "raw_html: must be a string"),
    ],
)
def test_malformed_dump_is_named_and_nothing_is_written(tmp_path: Path, written: str, problem: str):
    raw = tmp_path / "dump.json"
    raw.write_text(written)
    with pytest.raises(DataUnreadable, match=problem):
        build(source(tmp_path), tmp_path / "out.jsonl", raw=raw)
    with pytest.raises(DataMissing, match="there is no"):
        build(source(tmp_path), tmp_path / "out.jsonl", raw=tmp_path / "none")
    assert not (tmp_path / "out.jsonl").exists()
