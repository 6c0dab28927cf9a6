"""Rows out of Parquet and JSON lines, one at a time: many gigabytes pass through a few megabytes of memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judges.suites.errors import DataMissing, DataUnreadable

SUFFIXES = (".parquet", ".jsonl")
_ROWS_AT_ONCE = 4
"""A row with its screenshot and pages is some megabytes."""
_BUFFER_BYTES = 1 << 20
MAX_LINE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``position`` counts over all files from 0, ``place`` says where it stands for a reader of an error."""

    position: int
    place: str
    values: dict[str, Any]


def data_files(path: Path) -> list[Path]:
    """The files to read: the one that is named, or all of a folder by name.

    Raises:
        DataMissing: there are none.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise DataMissing(f"{path} is neither .parquet nor .jsonl")
        return [path]
    found = sorted(each for each in path.glob("*") if each.suffix in SUFFIXES and each.is_file())
    if not found:
        raise DataMissing(f"{path}: there is no .parquet or .jsonl file" if path.is_dir() else f"{path} does not exist")
    return found


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Every row of a file or folder in order; with ``columns`` at most those, as far as they exist. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    position = 0
    for file in data_files(path):
        rows = _parquet(file, columns) if file.suffix == ".parquet" else _lines(file, columns)
        for number, values in enumerate(rows):
            yield Row(position=position, place=f"{file.name}, row {number}", values=values)
            position += 1


def count_rows(path: Path) -> int:
    """How many rows a file or folder holds, without decoding them. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    return sum(_count(file) for file in data_files(path))


def read_row(path: Path, position: int) -> Row | None:
    """The row at a position, whole; None where the data ends before. Reads no more than it must. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    before = 0
    for file in data_files(path):
        if file.suffix == ".parquet":
            with _opened(file) as source:
                count = source.metadata.num_rows
                if position < before + count:
                    values = _row_of(source, position - before, file)
                    return Row(position=position, place=f"{file.name}, row {position - before}", values=values)
            before += count
            continue
        for values in _lines(file, None, only=position - before):
            if before == position:
                return Row(position=position, place=f"{file.name}, row {position}", values=values)
            before += 1
    return None


def _parquet(file: Path, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    with _opened(file) as source:
        yield from _batches(source, range(source.num_row_groups), _present(source, columns), file)


def _count(file: Path) -> int:
    if file.suffix == ".parquet":
        with _opened(file) as source:
            return int(source.metadata.num_rows)
    try:
        with file.open("rb") as lines:
            return sum(not line.isspace() for line in lines)
    except OSError as error:
        raise DataUnreadable(file.name, f"cannot be read: {error.strerror}") from error


def _row_of(source: pq.ParquetFile, number: int, file: Path) -> dict[str, Any]:
    for group in range(source.num_row_groups):
        count = source.metadata.row_group(group).num_rows
        if number < count:
            for nth, values in enumerate(_batches(source, [group], None, file)):
                if nth == number:
                    return values
        number -= count
    raise DataUnreadable(file.name, "has fewer rows than it says")


def _batches(
    source: pq.ParquetFile, groups: Sequence[int], columns: list[str] | None, file: Path
) -> Iterator[dict[str, Any]]:
    try:
        for batch in source.iter_batches(
            batch_size=_ROWS_AT_ONCE, row_groups=list(groups), columns=columns, use_threads=False
        ):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataUnreadable(file.name, f"is damaged: {error}") from error


def _opened(file: Path) -> pq.ParquetFile:
    try:
        # Unbuffered, a column of a row group would be read whole: hundreds of megabytes of screenshots.
        return pq.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataUnreadable(file.name, f"is no Parquet file: {error}") from error


def _present(source: pq.ParquetFile, columns: Sequence[str] | None) -> list[str] | None:
    names = set(source.schema_arrow.names)
    return None if columns is None else [name for name in columns if name in names]


def _lines(file: Path, columns: Sequence[str] | None, *, only: int | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; with ``only`` the others come empty, which spares decoding them."""
    try:
        with file.open("rb") as lines:
            number = 0
            while line := lines.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise DataUnreadable(f"{file.name}, row {number}", f"is longer than {MAX_LINE_BYTES} bytes")
                if line.isspace():
                    continue
                wanted = only is None or only == number
                yield _object(line, f"{file.name}, row {number}", columns) if wanted else {}
                number += 1
    except OSError as error:
        raise DataUnreadable(file.name, f"cannot be read: {error.strerror}") from error


def _object(line: bytes, place: str, columns: Sequence[str] | None) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataUnreadable(place, f"is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise DataUnreadable(place, "is no JSON object")
    return values if columns is None else {name: values[name] for name in columns if name in values}
