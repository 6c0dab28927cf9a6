"""Streaming reader of rows from Parquet and JSON lines, with bounded memory, and the rows of Multimodal-Mind2Web.

A row is a step with page, screenshot and positive elements. Several columns contain JSON strings; the candidates'
attributes are JSON strings within them.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq
import base64
import binascii
from collections.abc import Mapping

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.multimodal.tilde_rows import RowFields

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
        DataMissing: there are none.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise DataMissing(f"{path} must be a .parquet or .jsonl file")
        return [path]
    files = sorted(each for each in path.glob("*") if each.suffix in SUFFIXES and each.is_file())
    if not files:
        raise DataMissing(f"{path}: there is no .parquet or .jsonl file" if path.is_dir() else f"{path} does not exist")
    return files


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield every row of a file or folder in order. ``columns`` restricts the columns. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    position = 0
    for file in data_files(path):
        rows = _parquet_rows(file, columns) if file.suffix == ".parquet" else _json_rows(file, columns)
        for number, values in enumerate(rows):
            yield Row(position=position, place=f"{file.name}, row {number}", values=values)
            position += 1


def count_rows(path: Path) -> int:
    """Return the number of rows of a file or folder, without decoding them. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    return sum(_count(file) for file in data_files(path))


def read_row(path: Path, position: int) -> Row | None:
    """Return the complete row at a position, or None after the end. Reads only what is necessary. Blocks.

    Raises:
        DataMissing, DataUnreadable
    """
    before = 0
    for file in data_files(path):
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


def _count(file: Path) -> int:
    if file.suffix == ".parquet":
        with _open_parquet(file) as source:
            return int(source.metadata.num_rows)
    try:
        with file.open("rb") as lines:
            return sum(bool(_content(line)) for line in lines)
    except OSError as error:
        raise DataUnreadable(file.name, f"cannot be read: {error.strerror}") from error


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
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.parquet as pq

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


COLUMNS = (
    "action_uid",
    "raw_html",
    "cleaned_html",
    "operation",
    "pos_candidates",
    "neg_candidates",
    "website",
    "domain",
    "subdomain",
    "annotation_id",
    "confirmed_task",
    "screenshot",
    "action_reprs",
    "target_action_index",
)
"""Columns that are read. In the test splits raw_html is a copy of cleaned_html."""
LAYOUT_COLUMNS = ("actions", "task_id")
"""Columns of other layouts of the two data sets, by which they are recognized."""
OPS = frozenset({"CLICK", "TYPE", "SELECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Candidate element. ``box`` is ``x,y,w,h`` in page pixels, empty if unknown."""

    id: str
    tag: str
    box: str
    attributes: str
    """JSON text, empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStep:
    """One step. ``screenshot`` is the content of an image file, or None for the few rows without one."""

    place: str
    action_uid: str
    task_id: str
    step: int
    task: str
    history: tuple[str, ...]
    raw_page: str
    page: str
    op: str
    value: str
    positives: tuple[Candidate, ...]
    negatives: tuple[Candidate, ...]
    screenshot: bytes | None
    website: str
    domain: str
    subdomain: str


def read_source_step(values: Mapping[str, Any], *, place: str) -> SourceStep:
    """Validate and convert a row.

    Raises:
        DataUnreadable: a field is missing or malformed. The message names the first one.
    """
    check_layout(values, place)
    row = RowFields(values, place)
    step = row.whole("target_action_index")
    operation = row.decoded("operation")
    if not isinstance(operation, Mapping):
        raise row.error("operation", "must be an object with op and value")
    inner = RowFields(operation, f"{place}, field operation")
    op = inner.text("op", needed=True)
    if op not in OPS:
        raise inner.error("op", f"must be one of {', '.join(sorted(OPS))}, not {op[:40]!r}")
    reprs = row.texts("action_reprs", needed=True)
    return SourceStep(
        place=place,
        action_uid=row.text("action_uid", needed=True),
        task_id=row.text("annotation_id", needed=True),
        step=step,
        task=row.text("confirmed_task", needed=True),
        history=reprs[:step],
        raw_page=row.text("raw_html"),
        page=row.text("cleaned_html", needed=not values.get("raw_html")),
        op=op,
        value=inner.text("value"),
        positives=_candidates(row, "pos_candidates"),
        negatives=_candidates(row, "neg_candidates"),
        screenshot=_screenshot(row, values.get("screenshot")),
        website=row.text("website"),
        domain=row.text("domain"),
        subdomain=row.text("subdomain"),
    )


def check_layout(values: Mapping[str, Any], place: str) -> None:
    """Raise DataUnreadable if the row belongs to another layout of the data sets."""
    if "actions" in values:
        raise DataUnreadable(
            place,
            "is a whole task of Mind2Web, as in the Parquet files that the hub makes of it: use its JSON files "
            "(data/<split>/<split>_0.json) with `assay suites mind2web`",
        )
    if "task_id" in values and "annotation_id" not in values:
        raise DataUnreadable(
            place,
            "is a row of Multimodal-Mind2Web~: use it with `assay suites mm-mind2web`, which needs no other file",
        )


def _candidates(row: RowFields, name: str) -> tuple[Candidate, ...]:
    listed = row.decoded(name)
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple):
        raise row.error(name, "must be a list of candidates")
    candidates = []
    for number, one in enumerate(listed):
        item_place = f"{name}.{number}"
        candidate = row.json(item_place, one) if isinstance(one, str) else one
        if not isinstance(candidate, Mapping) or not isinstance(candidate.get("backend_node_id"), str):
            raise row.error(item_place, "must be an object with a string backend_node_id")
        attributes = candidate.get("attributes") or {}
        if isinstance(attributes, str):
            attributes = row.json(f"{item_place}.attributes", attributes)
        if not isinstance(attributes, Mapping):
            raise row.error(f"{item_place}.attributes", "must be an object")
        box = attributes.get("bounding_box_rect")
        candidates.append(
            Candidate(
                id=candidate["backend_node_id"],
                tag=str(candidate.get("tag") or ""),
                box=box if isinstance(box, str) else "",
                attributes=text if isinstance(text := candidate.get("attributes"), str) else json.dumps(attributes),
            )
        )
    return tuple(candidates)


def _screenshot(row: RowFields, value: Any) -> bytes | None:
    """Return the image bytes. Parquet stores them in a struct, JSON lines as base64 or as a data URI."""
    if isinstance(value, Mapping):
        value = value.get("bytes")
    if isinstance(value, str) and value:
        try:
            value = base64.b64decode(value.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise row.error("screenshot", "is not valid base64") from error
    if not value:
        return None
    if not isinstance(value, bytes):
        raise row.error("screenshot", "must be the bytes of an image")
    return value
