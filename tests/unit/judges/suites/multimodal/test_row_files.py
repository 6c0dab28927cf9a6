from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.multimodal.row_files import data_files, read_row, read_rows


def rows_of(path: Path, **options):
    return [(row.position, row.values) for row in read_rows(path, **options)]


def parquet(path: Path, count: int, *, group: int = 3) -> Path:
    table = pa.table({"number": list(range(count)), "name": [f"n{n}" for n in range(count)]})
    pq.write_table(table, path, row_group_size=group)
    return path


def lines(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"number": n, "name": f"n{n}"}) + "\n\n" for n in range(count)))
    return path


@pytest.mark.parametrize("make", [parquet, lines])
def test_rows_are_in_order_with_their_positions(make, tmp_path: Path):
    path = make(tmp_path / f"rows.{'parquet' if make is parquet else 'jsonl'}", 10)
    assert rows_of(path) == [(n, {"number": n, "name": f"n{n}"}) for n in range(10)]
    assert rows_of(path, columns=("number", "else"))[3] == (3, {"number": 3})


def test_files_of_a_folder_are_read_in_name_order(tmp_path: Path):
    parquet(tmp_path / "b.parquet", 4)
    lines(tmp_path / "a.jsonl", 2)
    (tmp_path / "notes.txt").write_text("x")
    found = list(read_rows(tmp_path))
    assert [(row.position, row.place) for row in found][:3] == [
        (0, "a.jsonl, row 0"),
        (1, "a.jsonl, row 1"),
        (2, "b.parquet, row 0"),
    ]
    assert [read_row(tmp_path, position) for position in range(6)] == found
    assert read_row(tmp_path, 6) is None


@pytest.mark.parametrize("name", ["nothing.parquet", "empty", "notes.txt"])
def test_missing_data_raises(name: str, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataMissing):
        data_files(tmp_path / name)


@pytest.mark.parametrize("content", [b"PAR1", b"", b"\x00" * 100])
def test_invalid_parquet_file_is_named_in_the_error(content: bytes, tmp_path: Path):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(DataUnreadable, match=r"x\.parquet"):
        rows_of(tmp_path / "x.parquet")


def test_damaged_parquet_file_is_named_in_the_error(tmp_path: Path):
    path = parquet(tmp_path / "x.parquet", 100)
    content = bytearray(path.read_bytes())
    content[10:200] = b"\xff" * 190
    path.write_bytes(content)
    with pytest.raises(DataUnreadable, match=r"x\.parquet"):
        rows_of(path)


@pytest.mark.parametrize("line", ["{", "[1]", "5", "[" * 100_000, '{"a": \xff'])
def test_damaged_line_is_named_in_the_error(line: str, tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(DataUnreadable, match=r"x\.jsonl, row 1"):
        rows_of(path)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1] * 9, pa.timestamp("ns")),
        pa.array([2**62] * 9, pa.timestamp("us")),
        pa.array([1] * 9, pa.duration("ns")),
        pa.array([b"n"] * 8 + [b"\xff"]).view(pa.string()),
    ],
    ids=["nanoseconds", "year_too_large", "nanosecond_duration", "not_utf8"],
)
def test_value_that_python_cannot_represent_is_named_with_its_place(values: pa.Array, tmp_path: Path):
    pq.write_table(pa.table({"step": values}), tmp_path / "a.parquet", row_group_size=5)
    row = 8 if values.type == pa.string() else 0
    with pytest.raises(DataUnreadable, match=rf"a\.parquet, row {row} or later: is damaged"):
        list(read_rows(tmp_path))
    with pytest.raises(DataUnreadable, match=r"a\.parquet, row 5 or later: is damaged"):
        read_row(tmp_path, 8)
