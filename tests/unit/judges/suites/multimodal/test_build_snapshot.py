from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.features.suites.mm_mind2web import read_input
from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import read_rows
from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.multimodal import STEPS, page, write_rows

DRAW = SamplingOptions(distractors=3)


def build(source: Path, out: Path, *, split: str | None = None, draw: SamplingOptions = DRAW, raw: Path | None = None):
    return build_snapshot(source, out, draw, split=split, raw=raw, watch=lambda rows: None)


def source(folder: Path, kind: str = "parquet") -> Path:
    return write_rows(folder / f"test_website-00000.{kind}", STEPS)


def test_same_rows_give_the_same_bytes(tmp_path: Path):
    made = [tmp_path / f"{n}.parquet" for n in range(3)]
    build(source(tmp_path), made[0])
    build(source(tmp_path), made[1])
    build(source(tmp_path, "jsonl"), made[2])
    assert made[0].read_bytes() == made[1].read_bytes() == made[2].read_bytes()


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


def test_failed_build_keeps_an_earlier_file(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    with pytest.raises(DataUnreadable):
        build(write_rows(tmp_path / "train.jsonl", [STEPS[0], STEPS[0]]), out)
    assert out.read_text() == "before"


def test_is_valid_is_a_string_as_on_the_dataset_card(tmp_path: Path):
    build(source(tmp_path), tmp_path / "out.jsonl")
    assert [row.values["is_valid"] for row in read_rows(tmp_path / "out.jsonl")] == [
        "True", "True", "False", "True", "True", "False", "True",
    ]  # fmt: skip
    assert read_input(tmp_path / "out.jsonl").skipped == {"is_valid_false": 2}


def dump_task(id: str, **pages: object) -> dict[str, object]:
    actions = [{"action_uid": uid.replace("_", "-"), "raw_html": page} for uid, page in pages.items()]
    return {"annotation_id": id, "actions": actions}


def test_raw_pages_are_joined_from_the_original_dump(tmp_path: Path):
    tasks = [
        dump_task("t9", x=1),
        dump_task("t1", t1_1="<raw 11>", t1_0="<raw 10>", t1_2=""),
        dump_task("t3", t3_0="<raw 30>"),
    ]
    raw = tmp_path / "dump" / "test_website"
    raw.mkdir(parents=True)
    file = raw / "test_website_0.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(tasks).encode())
    counted = build(source(tmp_path), tmp_path / "out.jsonl", raw=tmp_path / "dump")
    built = {(row.values["task_id"], row.values["step"]): row.values for row in read_rows(tmp_path / "out.jsonl")}
    raw_pages = [values["raw_html"] for values in built.values()]
    assert raw_pages == ["<raw 10>", "<raw 11>", page(), page(), page(), "<raw 30>", page()]
    assert counted["without_raw_page"] == 4
    assert "bnid" in built["t1", 0]["cleaned_html"]
