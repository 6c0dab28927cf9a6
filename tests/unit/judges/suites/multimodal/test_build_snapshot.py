from __future__ import annotations

from pathlib import Path

import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import read_rows
from judges.suites.multimodal.snapshot import SamplingOptions, SnapshotUnwritable, build_snapshot
from tests.fakes.multimodal import STEPS, source_row, write_rows

DRAW = SamplingOptions(distractors=3)


def build(source: Path, out: Path, *, split: str | None = None, draw: SamplingOptions = DRAW):
    return build_snapshot(source, out, draw, split=split, watch=lambda rows: None)


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
        "tasks": 4,
        "distractors": 3,
        "seed": 42,
    }


def test_split_is_taken_from_the_file_name_or_the_argument(tmp_path: Path):
    for split, expected in ((None, "test_website"), ("mine", "mine")):
        build(source(tmp_path), tmp_path / "out.jsonl", split=split)
        assert {row.values["split"] for row in read_rows(tmp_path / "out.jsonl")} == {expected}


def test_error_leaves_no_file(tmp_path: Path):
    rows = write_rows(tmp_path / "in.jsonl", [STEPS[0], source_row("t1", 0, "CLICK")])
    with pytest.raises(DataUnreadable, match=r"in\.jsonl, row 1: repeats step t1:0"):
        build(rows, tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_failed_build_keeps_an_earlier_file(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    with pytest.raises(DataUnreadable):
        build(write_rows(tmp_path / "in.jsonl", [STEPS[0], STEPS[0]]), out)
    assert out.read_text() == "before"


@pytest.mark.parametrize("name", ["out.csv", "out", "file/out.parquet"])
def test_file_that_cannot_be_written_is_named(name: str, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SnapshotUnwritable):
        build(source(tmp_path), tmp_path / name)
