"""Steps of a split, from the published JSON or from rows of Multimodal-Mind2Web.

A data root is one file, the folder of a split, or a parent folder whose files are named after the split.

The files are untrusted. Every used field is validated, and errors name file, task, action and field.

A step has a page, a gold operation and candidate elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.json_items import item_spans, read_item, read_items
from judges.suites.multimodal import row_files
from judges.suites.multimodal.row_files import OPS, SourceStep, read_row, read_rows, read_source_step
from judges.suites.multimodal.tilde_rows import RowFields


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
    source, for error messages.
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

    @property
    def sample_id(self) -> str:
        """The id of the step in scores and predictions files."""
        return f"{self.task_id}_{self.action_uid}"


ROW_SUFFIXES = frozenset({".parquet", ".jsonl"})
SUFFIXES = frozenset({".json"}) | ROW_SUFFIXES
KNOWN_SPLITS = ("train", "test_task", "test_website", "test_domain")
_COLUMNS = (*(name for name in row_files.COLUMNS if name != "screenshot"), *row_files.LAYOUT_COLUMNS)
_DIGITS = re.compile(r"(\d+)")


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
            for step in _read(file, position):
                yield step
                position += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """Place of one task in the files of a split.

    ``item`` is the index of a JSON file, and offset and length of the task in it; ``rows`` are (file, row) of its steps
    in row files, by step number. ``first`` is the position of the first step in the split.
    """

    task_id: str
    steps: int
    first: int
    item: tuple[int, int, int] | None = None
    rows: tuple[tuple[int, int], ...] = ()


def index_tasks(split: Split) -> list[TaskPlace]:
    """Return the place of every task with steps, in order. Validates all steps. Blocks.

    Raises:
        DataUnreadable: a file or a field is malformed, or a step occurs twice.
    """
    places: list[TaskPlace] = []
    rows: dict[str, list[tuple[int, int, int]]] = {}
    seen: dict[str, str] = {}
    position = 0

    def check_new(step: Step) -> None:
        if step.sample_id in seen:
            raise DataUnreadable(step.place, f"repeats step {step.sample_id} of {seen[step.sample_id]}")
        seen[step.sample_id] = step.place

    for number, file in enumerate(split.files):
        if file.suffix in ROW_SUFFIXES:
            for row, step in enumerate(_read(file, 0)):
                check_new(step)
                rows.setdefault(step.task_id, []).append((step.number, number, row))
            continue
        for index, (span, task) in enumerate(item_spans(file)):
            steps = list(_steps(task, file, index, position))
            for step in steps:
                check_new(step)
            if steps:
                item = (number, *span)
                places.append(TaskPlace(task_id=steps[0].task_id, steps=len(steps), first=position, item=item))
            position += len(steps)
    for task_id, members in rows.items():
        ordered = tuple((file_number, row) for _, file_number, row in sorted(members))
        places.append(TaskPlace(task_id=task_id, steps=len(members), first=position, rows=ordered))
        position += len(members)
    return places


def read_task(split: Split, place: TaskPlace) -> list[Step]:
    """Return the steps of one task, by number. Blocks.

    Raises:
        DataMissing: the files have changed since ``index_tasks``.
        DataUnreadable: a file or a field is malformed.
    """
    changed = DataMissing(f"the files of split {split.name} have changed: task {place.task_id} is not at its place")
    try:
        if place.item is not None:
            file = split.files[place.item[0]]
            steps = list(_steps(read_item(file, place.item[1:]), file, 0, place.first))
        else:
            found = (read_row(split.files[number], row) for number, row in place.rows)
            steps = [
                _from_row(read_source_step(row.values, place=row.place), place.first + nth)
                for nth, row in enumerate(found)
                if row is not None
            ]
    except IndexError as error:
        raise changed from error
    if len(steps) != place.steps or any(step.task_id != place.task_id for step in steps):
        raise changed
    return steps


def find_split(root: Path, name: str) -> Split:
    """Return the split with the files found under ``root``.

    Raises:
        DataMissing: there are none. The message lists the files that exist.
    """
    return Split(name=name, files=tuple(_files(root, name)))


def _files(root: Path, split: str) -> list[Path]:
    if root.is_file():
        if root.suffix not in SUFFIXES:
            raise DataMissing(f"{root} must be a .json, .jsonl or .parquet file")
        return [root]
    if not root.is_dir():
        raise DataMissing(f"{root} does not exist")
    for paths in (_data_files(root / split), _named(root, split), _unnamed(root, split)):
        if paths:
            return paths
    existing = ", ".join(sorted(path.name for path in root.iterdir())[:10]) or "nothing"
    raise DataMissing(f"{root}: no file of split {split!r} (*{split}*.json, .jsonl or .parquet); found: {existing}")


def _data_files(folder: Path) -> list[Path]:
    return _sorted_files(path for path in folder.glob("*") if path.suffix in SUFFIXES and path.is_file())


def _named(root: Path, split: str) -> list[Path]:
    """Return the files named after the split, from this folder or, if it has none, from any subfolder."""

    def fits(path: Path) -> bool:
        return split in path.name and path.suffix in SUFFIXES and path.is_file()

    return _sorted_files(path for path in root.iterdir() if fits(path)) or _sorted_files(
        path for path in root.rglob("*") if fits(path)
    )


def _unnamed(root: Path, split: str) -> list[Path]:
    """Return all data files of a folder, unless the folder or a file is named after another split."""
    paths = _data_files(root)
    others = [name for name in KNOWN_SPLITS if name != split]
    if root.name != split and any(name in path.name for path in (root, *paths) for name in others):
        return []
    return paths


def _sorted_files(paths: Iterator[Path]) -> list[Path]:
    """Sort by name, ``test_task_2`` before ``test_task_10``. If there are JSON files, row files are ignored."""
    ordered = sorted(paths, key=_natural_key)
    tasks = [path for path in ordered if path.suffix == ".json"]
    return tasks or ordered


def _natural_key(path: Path) -> list[tuple[str, int]]:
    parts = _DIGITS.split(str(path))
    return [(text, int(digits or 0)) for text, digits in zip(parts[::2], [*parts[1::2], "0"], strict=True)]


def _read(file: Path, position: int) -> Iterator[Step]:
    if file.suffix not in ROW_SUFFIXES:
        yield from read_tasks_file(file, first_position=position)
        return
    for offset, row in enumerate(read_rows(file, _COLUMNS)):
        yield _from_row(read_source_step(row.values, place=row.place), position + offset)


def _from_row(row: SourceStep, position: int) -> Step:
    return Step(
        place=f"{row.place} (task {row.task_id}, action {row.action_uid})",
        position=position,
        task_id=row.task_id,
        action_uid=row.action_uid,
        number=row.step,
        website=row.website,
        domain=row.domain,
        subdomain=row.subdomain,
        task=row.task,
        history=row.history,
        page=row.page or row.raw_page,
        op=row.op,
        value=row.value,
        positives=tuple(map(_from_row_candidate, row.positives)),
        negatives=tuple(map(_from_row_candidate, row.negatives)),
    )


def _from_row_candidate(one: row_files.Candidate) -> Candidate:
    return Candidate(id=one.id, tag=one.tag, box=one.box, attributes=one.attributes)


_BOX = re.compile(r'"bounding_box_rect"\s*:\s*"([^"\\]*)"')


def read_tasks_file(file: Path, *, first_position: int = 0) -> Iterator[Step]:
    """Yield every step of a file, in order. Blocks.

    Raises:
        DataUnreadable: the file is not a JSON list of tasks, or a field is missing or malformed.
    """
    position = first_position
    for number, task in enumerate(read_items(file)):
        for step in _steps(task, file, number, position):
            yield step
            position += 1


def _steps(task: Any, file: Path, number: int, position: int) -> Iterator[Step]:
    """Yield the steps of one task. ``number`` identifies the task in errors before its id is read."""
    place = f"{file.name}, task {number}"
    if not isinstance(task, Mapping):
        raise DataUnreadable(place, "must be an object")
    fields = RowFields(task, place)
    task_id = fields.text("annotation_id", needed=True)
    place = f"{file.name}, task {task_id}"
    fields = RowFields(task, place)
    reprs = fields.texts("action_reprs", needed=True)
    actions = fields.given("actions")
    if not isinstance(actions, list):
        raise fields.error("actions", "must be a list of actions")
    website, domain = fields.text("website", needed=True), fields.text("domain")
    subdomain, description = fields.text("subdomain"), fields.text("confirmed_task", needed=True)
    for index, action in enumerate(actions):
        action_place = f"{place}, action {index}"
        if not isinstance(action, Mapping):
            raise DataUnreadable(action_place, "must be an object")
        own = RowFields(action, action_place)
        action_uid = own.text("action_uid", needed=True)
        action_place = f"{action_place} ({action_uid})"
        own = RowFields(action, action_place)
        op, value = _operation(own, action_place)
        yield Step(
            place=action_place,
            position=position + index,
            task_id=task_id,
            action_uid=action_uid,
            number=index,
            website=website,
            domain=domain,
            subdomain=subdomain,
            task=description,
            history=reprs[:index],
            page=own.text("cleaned_html") or own.text("raw_html") or own.text("cleaned_html", needed=True),
            op=op,
            value=value,
            positives=_candidates(own, "pos_candidates"),
            negatives=_candidates(own, "neg_candidates"),
        )


def _operation(action: RowFields, place: str) -> tuple[str, str]:
    value = action.given("operation")
    if isinstance(value, str):
        value = action.json("operation", value)
    if not isinstance(value, Mapping):
        raise action.error("operation", "must be an object with op and value")
    fields = RowFields(value, f"{place}, field operation")
    op = fields.text("op", needed=True)
    if op not in OPS:
        raise fields.error("op", f"must be one of {', '.join(sorted(OPS))}, not {op[:40]!r}")
    return op, fields.text("value")


def _candidates(action: RowFields, name: str) -> tuple[Candidate, ...]:
    listed = action.given(name)
    if not isinstance(listed, list):
        raise action.error(name, "must be a list of candidates")
    return tuple(_candidate(action, f"{name}.{number}", one) for number, one in enumerate(listed))


def _candidate(action: RowFields, name: str, value: Any) -> Candidate:
    one = action.json(name, value) if isinstance(value, str) else value
    if not isinstance(one, Mapping):
        raise action.error(name, "must be an object")
    id, rank = one.get("backend_node_id"), one.get("rank")
    if not isinstance(id, str) or not id:
        raise action.error(f"{name}.backend_node_id", "must be a non-empty string")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 0):
        raise action.error(f"{name}.rank", "must be an integer >= 0")
    tag = one.get("tag")
    score, attributes = one.get("score"), one.get("attributes")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise action.error(f"{name}.score", "must be a number")
    return Candidate(
        id=id,
        tag=tag if isinstance(tag, str) else "",
        box=_box(action, name, one),
        rank=rank,
        score=score,
        attributes=attributes if isinstance(attributes, str) else json.dumps(attributes),
    )


def _box(action: RowFields, name: str, one: Mapping[str, Any]) -> str:
    """Return the bounding box from the attributes, which are usually a JSON string.

    A regular expression extracts it, because decoding hundreds of attributes per step is slow.
    """
    attributes = one.get("attributes")
    if attributes is None:
        return ""
    if isinstance(attributes, str):
        if not attributes.lstrip().startswith("{"):
            raise action.error(f"{name}.attributes", "must be a JSON object as a string")
        match = _BOX.search(attributes)
        return match[1] if match else ""
    if not isinstance(attributes, Mapping):
        raise action.error(f"{name}.attributes", "must be a JSON object as a string")
    box = attributes.get("bounding_box_rect")
    return box if isinstance(box, str) else ""
