"""Rows of label files: JSON lines, JSON documents and Parquet, read one at a time. Blocks on the disk.

A row that cannot be read is yielded as an ``UnusableRow`` and reading goes on. A file that cannot be read raises.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from judges.analysis.labels import MAX_LINE_BYTES, LabelsUnreadable

_PARQUET_ROWS: Final = 256
"""Rows that are decoded at once."""
_PARQUET_MAGIC: Final = b"PAR1"


class Problem(StrEnum):
    """Reason why a row is not used."""

    INVALID_JSON = "invalid_json"
    TOO_LONG = "row_too_long"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_LABEL = "unknown_label"
    NO_CLAIM = "no_claim"
    NO_SOURCE_TEXT = "no_source_text"
    SOURCE_UNAVAILABLE = "source_unavailable"
    """People could not open the source, so there is no label on the claim."""
    DUPLICATE_ID = "duplicate_id"
    """Different rows have the same id."""
    CONTRADICTING = "contradicting_labels"
    """The same claim with the same source has different labels in the set."""


class UnusableRow(Exception):
    """Row that is not used: the reason, and what is wrong."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """Row of a file. ``number`` counts from 1; for JSON lines it is the line. ``run`` names the run of a judge."""

    file: str
    number: int
    fields: dict[str, Any] | UnusableRow
    run: str = ""


Rows: TypeAlias = Iterator[SourceRow]


def read_rows(path: Path) -> Rows:
    """Yield the rows of a file. Its format is recognized by its content.

    Raises:
        LabelsUnreadable: The file cannot be read, is empty, or is damaged after some rows.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
                yield from _parquet(path)
                return
            _rewind(file)
            read = _document if _is_document(file) else _lines
            _rewind(file)
            yield from read(path, file)
    except OSError as error:
        raise LabelsUnreadable(f"{path} cannot be read: {error.strerror or error}") from error


def _rewind(file: BinaryIO) -> None:
    """Go to the start of a file, behind its byte order mark."""
    file.seek(0)
    if file.read(len(BOM_UTF8)) != BOM_UTF8:
        file.seek(0)


def _is_document(file: BinaryIO) -> bool:
    """Return whether a file is one JSON document with many rows, and not JSON lines.

    A document is an array, or an object with the key ``rows``. Reads as much as necessary.
    """
    import ijson

    depth = 0
    with suppress(ijson.JSONError, ValueError, RecursionError):
        for event, value in ijson.basic_parse(file, multiple_values=True, use_float=True):
            if (event, depth) == ("start_array", 0) or (event, value, depth) == ("map_key", "rows", 1):
                return True
            depth += event.startswith("start") - event.startswith("end")
            if not depth:
                break
    return False


def _lines(path: Path, file: BinaryIO) -> Rows:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        is_too_long = len(line) > MAX_LINE_BYTES
        while is_too_long and line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
        stripped = line.strip()
        if not is_too_long and not stripped:
            continue
        fields: dict[str, Any] | UnusableRow
        if is_too_long:
            fields = UnusableRow(Problem.TOO_LONG, f"longer than {MAX_LINE_BYTES} bytes")
        else:
            fields = _parse(stripped)
        yield SourceRow(file=path.name, number=number, fields=fields)
    if not number:
        raise LabelsUnreadable(f"{path}: the file is empty")


def _parse(line: bytes) -> dict[str, Any] | UnusableRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return UnusableRow(Problem.INVALID_JSON, str(error)[:200])
    return _object(row)


def _object(row: object) -> dict[str, Any] | UnusableRow:
    if isinstance(row, dict):
        return row
    return UnusableRow(Problem.NOT_AN_OBJECT, f"a row is an object, not {type(row).__name__}")


def _document(path: Path, file: BinaryIO) -> Rows:
    import ijson

    number = 0
    try:
        is_array = next(ijson.basic_parse(file, use_float=True))[0] == "start_array"
        _rewind(file)
        run = path.stem
        if not is_array:
            prompt_date = next(ijson.items(file, "metadata.prompt_date", use_float=True), None)
            run = prompt_date if isinstance(prompt_date, str) else run
            _rewind(file)
        for row in ijson.items(file, "item" if is_array else "rows.item", use_float=True):
            number += 1
            yield SourceRow(file=path.name, number=number, fields=_object(row), run=run)
    except (ijson.JSONError, ValueError, RecursionError, StopIteration) as error:
        raise LabelsUnreadable(f"{path}: invalid JSON after row {number}: {str(error)[:200]}") from error
    if not number:
        raise LabelsUnreadable(f'{path}: no rows: expected a JSON array, or an object with an array "rows"')


def _parquet(path: Path) -> Rows:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRow(file=path.name, number=number, fields=_object(row))
    except (pyarrow.ArrowException, ValueError) as error:
        raise LabelsUnreadable(f"{path}: invalid Parquet after row {number}: {str(error)[:200]}") from error
