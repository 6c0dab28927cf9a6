"""Writers of ~ snapshots: Parquet or JSON lines, chosen by file suffix.

The output is byte-for-byte reproducible with one version of the Parquet library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from judges.suites.errors import SuiteError
from judges.suites.multimodal.row_files import SUFFIXES

_ROWS_PER_GROUP = 16
"""A row group is buffered in memory until it is complete, and a lookup of one row reads the whole group."""
_PICTURE = pa.struct([("url", pa.string()), ("detail", pa.string())])
_PART = pa.struct([("type", pa.string()), ("text", pa.string()), ("image_url", _PICTURE)])
_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.list_(_PART))]))
_SCHEMA = pa.schema(
    [
        ("task_id", pa.string()),
        ("split", pa.string()),
        ("step", pa.int64()),
        ("task_description", pa.string()),
        ("prompt_0", _MESSAGES),
        ("prompt_1", _MESSAGES),
        ("raw_html", pa.string()),
        ("cleaned_html", pa.string()),
        ("candidates", pa.list_(pa.string())),
        ("target_elements", pa.list_(pa.string())),
        ("target_op", pa.string()),
        ("target_op_value", pa.string()),
        ("website", pa.string()),
        ("domain", pa.string()),
        ("subdomain", pa.string()),
        ("is_valid", pa.bool_()),
        ("action_uid", pa.string()),
        ("boxes", pa.string()),
        ("prompts", pa.string()),
    ]
)


class SnapshotUnwritable(SuiteError):
    """The file cannot be written."""


class RowWriter(Protocol):
    """Writer of rows."""

    def write(self, values: dict[str, Any]) -> None: ...


@contextmanager
def open_writer(path: Path) -> Iterator[RowWriter]:
    """Open a writer. The file appears atomically on success, and not at all after an error.

    Raises:
        SnapshotUnwritable: the suffix is neither .parquet nor .jsonl, or the file system reports an error.
    """
    if path.suffix not in SUFFIXES:
        raise SnapshotUnwritable(f"{path} must end in .parquet or .jsonl")
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = _ParquetWriter(partial) if path.suffix == ".parquet" else _JsonLinesWriter(partial)
        try:
            yield writer
            writer.close()
            partial.replace(path)
        finally:
            writer.abandon()
            partial.unlink(missing_ok=True)
    except (OSError, pa.ArrowException) as error:
        raise SnapshotUnwritable(f"{path} cannot be written: {error}") from error


class _JsonLinesWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n")

    def write(self, values: dict[str, Any]) -> None:
        self._file.write(json.dumps(values, ensure_ascii=True, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()

    abandon = close


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self._rows: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(path, _SCHEMA, compression="zstd", use_dictionary=False)

    def write(self, values: dict[str, Any]) -> None:
        self._rows.append(values)
        if len(self._rows) == _ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self.abandon()

    def abandon(self) -> None:
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_SCHEMA))
        self._rows = []
