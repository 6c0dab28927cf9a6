from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import read_rows


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


@pytest.mark.parametrize("line", ["{", "[" * 100_000, '{"a": \xff'])
def test_damaged_line_is_named_in_the_error(line: str, tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(DataUnreadable, match=r"x\.jsonl, row 1"):
        rows_of(path)
