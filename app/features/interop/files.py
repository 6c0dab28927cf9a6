"""Writers for CSV, Parquet and JSON lines files. Files are written atomically. Blocks on the disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from app.csv_tables import Cell, to_csv
from app.features.interop.rows import Kind, Table, Value
from judges.result_files import write_atomic


def write_csv(path: Path, rows: Table) -> None:
    """Write CSV as the dashboard does: UTF-8 with a byte order mark, with formulas escaped."""
    text = to_csv(list(rows.columns), ([_cell(value) for value in row] for row in rows.rows))
    write_atomic(path, text.encode("utf-8", "replace"))


def write_parquet(path: Path, rows: Table) -> None:
    """Write Parquet with typed, nullable columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        Kind.TEXT: pa.string(),
        Kind.COUNT: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.FLAG: pa.bool_(),
        Kind.TEXTS: pa.list_(pa.string()),
    }
    fields = [pa.field(name, kinds[kind]) for name, kind in rows.columns.items()]
    columns = [[_storable(row[index]) for row in rows.rows] for index in range(len(fields))]
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, fields, strict=True)]
    out = BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), out)
    write_atomic(path, out.getvalue())


def write_json_lines(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line, UTF-8."""
    lines = (json.dumps(dict(each), ensure_ascii=False, default=str) + "\n" for each in objects)
    write_atomic(path, "".join(lines).encode("utf-8", "replace"))


def _cell(value: Value) -> Cell:
    return "\n".join(value) if isinstance(value, tuple) else value


def _storable(value: Value) -> Any:
    """Replace lone surrogates, which UTF-8 (and therefore Parquet) cannot store."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_storable(each) for each in value] if isinstance(value, tuple) else value
