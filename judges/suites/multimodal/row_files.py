"""Streaming reader of rows from Parquet and JSON lines, with bounded memory, and typed access to their fields."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.late_libraries import pa, pq
from judges.suites.errors import DataUnreadable, SuiteError

SUFFIXES = (".parquet", ".jsonl")
_ROWS_AT_ONCE = 4
"""A row with its screenshot and pages has several megabytes."""
_BUFFER_BYTES = 1 << 20
MAX_LINE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. ``position`` counts over all files from 0; ``place`` names file and row for error messages."""

    position: int
    place: str
    values: dict[str, Any]


def data_files(path: Path) -> list[Path]:
    """Return the given file, or the data files of a folder sorted by name.

    Raises:
        SuiteError: there are none.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise SuiteError(f"{path} must be a .parquet or .jsonl file")
        return [path]
    files = sorted(each for each in path.glob("*") if each.suffix in SUFFIXES and each.is_file())
    if not files:
        raise SuiteError(f"{path}: there is no .parquet or .jsonl file" if path.is_dir() else f"{path} does not exist")
    return files


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield every row of a file or folder in order. ``columns`` restricts the columns. Blocks.

    Raises:
        SuiteError
    """
    position = 0
    for file in data_files(path):
        rows = _parquet_rows(file, columns) if file.suffix == ".parquet" else _json_rows(file, columns)
        for number, values in enumerate(rows):
            yield Row(position=position, place=f"{file.name}, row {number}", values=values)
            position += 1


def read_row(files: Iterable[Path], position: int) -> Row | None:
    """Return the complete row at a position in all files, or None after the end. Reads only what is necessary. Blocks.

    Raises:
        SuiteError
    """
    before = 0
    for file in files:
        if file.suffix == ".parquet":
            with _open_parquet(file) as source:
                count = source.metadata.num_rows
                if position < before + count:
                    values = _parquet_row(source, position - before, file)
                    return Row(position=position, place=f"{file.name}, row {position - before}", values=values)
            before += count
            continue
        for values in _json_rows(file, None, only=position - before):
            if before == position:
                return Row(position=position, place=f"{file.name}, row {position}", values=values)
            before += 1
    return None


def _parquet_rows(file: Path, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    with _open_parquet(file) as source:
        yield from _decode_batches(source, range(source.num_row_groups), _existing_columns(source, columns), file, 0)


def _parquet_row(source: pq.ParquetFile, number: int, file: Path) -> dict[str, Any]:
    first = 0
    for group in range(source.num_row_groups):
        count = source.metadata.row_group(group).num_rows
        if number < first + count:
            for nth, values in enumerate(_decode_batches(source, [group], None, file, first), start=first):
                if nth == number:
                    return values
        first += count
    raise DataUnreadable(file.name, "has fewer rows than its metadata states")


def _decode_batches(
    source: pq.ParquetFile, groups: Sequence[int], columns: list[str] | None, file: Path, first: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of row groups. ``first`` is the number of their first row in the file."""
    try:
        for batch in source.iter_batches(
            batch_size=_ROWS_AT_ONCE, row_groups=list(groups), columns=columns, use_threads=False
        ):
            yield from batch.to_pylist()
            first += batch.num_rows
    # Python cannot represent every value of a column, for example not every date.
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataUnreadable(f"{file.name}, row {first} or later", f"is damaged: {error}") from error


def _open_parquet(file: Path) -> pq.ParquetFile:
    try:
        # Without a buffer size, a whole column of a row group is read at once: hundreds of megabytes of screenshots.
        return pq.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataUnreadable(file.name, f"is not a Parquet file: {error}") from error


def _existing_columns(source: pq.ParquetFile, columns: Sequence[str] | None) -> list[str] | None:
    names = set(source.schema_arrow.names)
    return None if columns is None else [name for name in columns if name in names]


def _json_rows(file: Path, columns: Sequence[str] | None, *, only: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON lines file. With ``only``, all other rows are empty dicts and are not decoded."""
    try:
        with file.open("rb") as lines:
            number = 0
            while line := lines.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise DataUnreadable(f"{file.name}, row {number}", f"is longer than {MAX_LINE_BYTES} bytes")
                if not (content := _content(line)):
                    continue
                selected = only is None or only == number
                yield _object(content, f"{file.name}, row {number}", columns) if selected else {}
                number += 1
    except OSError as error:
        raise DataUnreadable(file.name, f"cannot be read: {error.strerror}") from error


def _content(line: bytes) -> bytes:
    return line.removeprefix(BOM_UTF8).strip()


def _object(line: bytes, place: str, columns: Sequence[str] | None) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataUnreadable(place, f"is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise DataUnreadable(place, "is not a JSON object")
    return values if columns is None else {name: values[name] for name in columns if name in values}


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


class RowFields:
    """Typed access to the fields of one row."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = values
        self._place = place

    @classmethod
    def of(cls, value: Any, place: str) -> RowFields:
        """Return the fields of a value. Raises DataUnreadable if it is not an object."""
        if not isinstance(value, Mapping):
            raise DataUnreadable(place, "must be an object")
        return cls(value, place)

    def place(self, name: str) -> str:
        return f"{self._place}, field {name}"

    def error(self, name: str, problem: str) -> DataUnreadable:
        return DataUnreadable(self.place(name), problem)

    def given(self, name: str) -> Any:
        if name not in self._values:
            raise self.error(name, "is missing")
        return self._values[name]

    def text(self, name: str, *, needed: bool = False) -> str:
        """Return a string. A null or missing value is empty unless it is ``needed``."""
        value = self.given(name) if needed else self._values.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value):
            requirement = "a non-empty string" if needed else "a string"
            raise self.error(name, f"must be {requirement}, not {_kind(value)}")
        return value

    def whole(self, name: str) -> int:
        """Return a non-negative integer, which some files write as a string."""
        value = self.given(name)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, f"must be an integer >= 0, not {_kind(value)}")
        return value

    def boolean(self, name: str) -> bool:
        """Return a boolean. The published files contain booleans, but their description specifies strings."""
        value = self.given(name)
        written = str(value).strip().lower() if isinstance(value, bool | str | int) else ""
        if written in _TRUE or written in _FALSE:
            return written in _TRUE
        raise self.error(name, f"must be true or false, not {_kind(value)}")

    def decoded(self, name: str) -> Any:
        """Return a value that may be a JSON string."""
        value = self.given(name)
        return self.json(name, value) if isinstance(value, str) else value

    def json(self, name: str, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error(name, f"is not valid JSON: {error}") from error

    def texts(self, name: str, *, needed: bool = False) -> tuple[str, ...]:
        """Return a list of strings. A null list is empty unless it is ``needed``."""
        value = self.decoded(name)
        if value is None and not needed:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.error(name, f"must be a list of strings, not {_kind(value)}")
        wrong = next((place for place, each in enumerate(value) if not isinstance(each, str)), None)
        if wrong is not None:
            raise self.error(name, f"must be a list of strings; item {wrong} is {_kind(value[wrong])}")
        return tuple(value)

    def boxes(self, name: str) -> dict[str, str]:
        if self._values.get(name) is None:
            return {}
        value = self.decoded(name)
        if not isinstance(value, Mapping) or not all(isinstance(box, str) for box in value.values()):
            raise self.error(name, f"must map element ids to boxes, not {_kind(value)}")
        return {str(key): box for key, box in value.items()}


def _kind(value: Any) -> str:
    """Return a short description of a value for an error. Long untrusted text is not quoted."""
    if value == "":
        return "an empty string"
    value_text = repr(value) if value is None or isinstance(value, bool | int | float) else ""
    return value_text or {"str": "a string", "dict": "an object", "list": "a list"}.get(
        type(value).__name__, "an unsupported value"
    )
