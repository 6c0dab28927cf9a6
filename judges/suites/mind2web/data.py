"""Steps of a split, from the published JSON or from rows of Multimodal-Mind2Web.

A data root is one file, the folder of a split, or a parent folder whose files are named after the split.

The files are untrusted. Every used field is validated, and errors name file, task or row, action and field. In rows,
several columns contain JSON strings; the candidates' attributes are JSON strings within them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judges.suites.errors import DataUnreadable, SuiteError
from judges.suites.json_items import read_items
from judges.suites.multimodal.row_files import RowFields, read_rows


class Candidate(NamedTuple):
    """Candidate element. ``rank`` starts at 0 for the best; None: not ranked.

    ``box`` is ``x,y,w,h`` in page pixels, empty if unknown. ``attributes`` is JSON text. The class is a tuple to save
    memory: a step has hundreds of candidates.
    """

    id: str
    tag: str = ""
    box: str = ""
    rank: int | None = None
    score: float | None = None
    attributes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a task. ``number`` is its index in the task, ``position`` its index in the whole data, both from 0.

    ``history`` contains the gold descriptions of all earlier steps of the task. ``place`` is the position in the
    source, for error messages. ``raw_page`` and ``screenshot`` (the content of an image file, or None for the few rows
    without one) are only read from rows.
    """

    place: str
    position: int
    task_id: str
    action_uid: str
    number: int
    website: str
    domain: str
    subdomain: str
    task: str
    history: tuple[str, ...]
    page: str
    op: str
    value: str
    positives: tuple[Candidate, ...]
    negatives: tuple[Candidate, ...]
    raw_page: str = ""
    screenshot: bytes | None = None

    @property
    def sample_id(self) -> str:
        """The id of the step in scores and predictions files."""
        return f"{self.task_id}_{self.action_uid}"


ROW_SUFFIXES = frozenset({".parquet", ".jsonl"})
SUFFIXES = frozenset({".json"}) | ROW_SUFFIXES
KNOWN_SPLITS = ("train", "test_task", "test_website", "test_domain")
STEP_COLUMNS = (
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
    "action_reprs",
    "target_action_index",
    "actions",
    "task_id",
)
"""Columns of Multimodal-Mind2Web that are read, and the last two, by which other layouts are recognized.

In the test splits raw_html is a copy of cleaned_html.
"""
_OPS = ("CLICK", "SELECT", "TYPE")
_DIGITS = re.compile(r"(\d+)")
_BOX = re.compile(r'"bounding_box_rect"\s*:\s*"([^"\\]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Files of a split, in order."""

    name: str
    files: tuple[Path, ...]

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order. Reads lazily. Blocks.

        Raises:
            DataUnreadable: a file or a field is malformed.
        """
        position = 0
        for file in self.files:
            for step in _steps_of_rows(file, position) if file.suffix in ROW_SUFFIXES else _tasks(file, position):
                yield step
                position += 1


def find_split(root: Path, name: str) -> Split:
    """Return the split with the files found under ``root``.

    Raises:
        SuiteError: there are none. The message lists the files that exist.
    """
    return Split(name=name, files=tuple(_files(root, name)))


def _files(root: Path, split: str) -> list[Path]:
    if root.is_file():
        if root.suffix not in SUFFIXES:
            raise SuiteError(f"{root} must be a .json, .jsonl or .parquet file")
        return [root]
    if not root.is_dir():
        raise SuiteError(f"{root} does not exist")
    for paths in (_data_files(root / split), _named(root, split), _unnamed(root, split)):
        if paths:
            return paths
    existing = ", ".join(sorted(path.name for path in root.iterdir())[:10]) or "nothing"
    raise SuiteError(f"{root}: no file of split {split!r} (*{split}*.json, .jsonl or .parquet); found: {existing}")


def _data_files(folder: Path, pattern: str = "*", part: str = "") -> list[Path]:
    """Return the data files with ``part`` in their name, ``test_task_2`` before ``test_task_10``.

    If there are JSON files, row files are ignored.
    """
    paths = (path for path in folder.glob(pattern) if part in path.name and path.suffix in SUFFIXES and path.is_file())
    ordered = sorted(paths, key=_natural_key)
    tasks = [path for path in ordered if path.suffix == ".json"]
    return tasks or ordered


def _named(root: Path, split: str) -> list[Path]:
    """Return the files named after the split, from this folder or, if it has none, from any subfolder."""
    return _data_files(root, part=split) or _data_files(root, "**/*", part=split)


def _unnamed(root: Path, split: str) -> list[Path]:
    """Return all data files of a folder, unless the folder or a file is named after another split."""
    paths = _data_files(root)
    others = [name for name in KNOWN_SPLITS if name != split]
    if root.name != split and any(name in path.name for path in (root, *paths) for name in others):
        return []
    return paths


def _natural_key(path: Path) -> list[tuple[str, int]]:
    parts = _DIGITS.split(str(path))
    return [(text, int(digits or 0)) for text, digits in zip(parts[::2], [*parts[1::2], "0"], strict=True)]


def _steps_of_rows(file: Path, position: int) -> Iterator[Step]:
    for offset, row in enumerate(read_rows(file, STEP_COLUMNS)):
        yield read_step(row.values, place=row.place, position=position + offset)


def read_step(values: Mapping[str, Any], *, place: str, position: int = 0) -> Step:
    """Validate a row of Multimodal-Mind2Web and return its step.

    Raises:
        DataUnreadable: a field is missing or malformed. The message names the first one.
    """
    check_layout(values, place)
    row = RowFields(values, place)
    task_id, action_uid = (row.text(name, needed=True) for name in ("annotation_id", "action_uid"))
    number = row.whole("target_action_index")
    raw_page = row.text("raw_html")
    return _step(
        row,
        place=f"{place} (task {task_id}, action {action_uid})",
        position=position,
        task_id=task_id,
        action_uid=action_uid,
        number=number,
        website=row.text("website"),
        domain=row.text("domain"),
        subdomain=row.text("subdomain"),
        task=row.text("confirmed_task", needed=True),
        history=row.texts("action_reprs", needed=True)[:number],
        raw_page=raw_page,
        screenshot=_screenshot(row, values.get("screenshot")),
    )


def _tasks(file: Path, position: int) -> Iterator[Step]:
    """Yield every step of a JSON list of tasks, in order."""
    for number, task in enumerate(read_items(file)):
        for step in _steps_of_task(task, file, number, position):
            yield step
            position += 1


def _steps_of_task(task: Any, file: Path, number: int, position: int) -> Iterator[Step]:
    """Yield the steps of one task. ``number`` identifies the task in errors before its id is read."""
    task_id = RowFields.of(task, f"{file.name}, task {number}").text("annotation_id", needed=True)
    place = f"{file.name}, task {task_id}"
    fields = RowFields(task, place)
    reprs = fields.texts("action_reprs", needed=True)
    actions = fields.given("actions")
    if not isinstance(actions, list):
        raise fields.error("actions", "must be a list of actions")
    website, description = fields.text("website", needed=True), fields.text("confirmed_task", needed=True)
    for index, action in enumerate(actions):
        action_uid = RowFields.of(action, f"{place}, action {index}").text("action_uid", needed=True)
        action_place = f"{place}, action {index} ({action_uid})"
        yield _step(
            RowFields(action, action_place),
            place=action_place,
            position=position + index,
            task_id=task_id,
            action_uid=action_uid,
            number=index,
            website=website,
            domain=fields.text("domain"),
            subdomain=fields.text("subdomain"),
            task=description,
            history=reprs[:index],
        )


def _step(fields: RowFields, **others: Any) -> Step:
    """Return a step with the page, the operation and the candidates in ``fields``."""
    written = RowFields.of(fields.decoded("operation"), fields.place("operation"))
    op = written.text("op", needed=True)
    if op not in _OPS:
        raise written.error("op", f"must be one of {', '.join(_OPS)}, not {op[:40]!r}")
    return Step(
        page=fields.text("cleaned_html") or fields.text("raw_html") or fields.text("cleaned_html", needed=True),
        op=op,
        value=written.text("value"),
        positives=_candidates(fields, "pos_candidates"),
        negatives=_candidates(fields, "neg_candidates"),
        **others,
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


def _candidates(fields: RowFields, name: str) -> tuple[Candidate, ...]:
    listed = fields.decoded(name) or []
    if not isinstance(listed, list):
        raise fields.error(name, "must be a list of candidates")
    return tuple(_candidate(fields, f"{name}.{number}", one) for number, one in enumerate(listed))


def _candidate(fields: RowFields, name: str, value: Any) -> Candidate:
    one = fields.json(name, value) if isinstance(value, str) else value
    if not isinstance(one, Mapping):
        raise fields.error(name, "must be an object")
    id, rank = one.get("backend_node_id"), one.get("rank")
    if not isinstance(id, str) or not id:
        raise fields.error(f"{name}.backend_node_id", "must be a non-empty string")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 0):
        raise fields.error(f"{name}.rank", "must be an integer >= 0")
    tag, score = one.get("tag"), one.get("score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise fields.error(f"{name}.score", "must be a number")
    attributes = one.get("attributes")
    if not isinstance(attributes, str):
        attributes = json.dumps(attributes or {})
    if not attributes.lstrip().startswith("{"):
        raise fields.error(f"{name}.attributes", "must be a JSON object as a string")
    # A regular expression, because decoding hundreds of attributes per step is slow.
    box = _BOX.search(attributes)
    tag = tag if isinstance(tag, str) else ""
    return Candidate(id, tag, box=box[1] if box else "", rank=rank, score=score, attributes=attributes)


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
