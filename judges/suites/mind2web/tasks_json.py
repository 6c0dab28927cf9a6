"""Streaming reader of the published Mind2Web JSON, one task at a time.

The files are untrusted. Every used field is validated, and errors name file, task, action and field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judges.suites.errors import DataUnreadable
from judges.suites.json_items import read_items
from judges.suites.mind2web.steps import Candidate, Step
from judges.suites.multimodal.tilde_rows import RowFields

OPS = frozenset({"CLICK", "TYPE", "SELECT"})
_CHUNK_BYTES = 1 << 20
_ACTION = re.compile(rb'"action_uid"\s*:')
"""Cannot match inside a JSON string, because quotes are escaped there."""
_LONGEST_MATCH = 64
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


def count_steps(file: Path) -> int:
    """Return the number of steps in a file, without decoding it. Blocks.

    Raises:
        DataUnreadable: the file cannot be read.
    """
    count, tail = 0, b""
    try:
        with file.open("rb") as source:
            while chunk := source.read(_CHUNK_BYTES):
                text = tail + chunk
                ends = [found.end() for found in _ACTION.finditer(text)]
                count += len(ends)
                # The kept tail must not contain a match that was already counted.
                tail = text[max(ends[-1] if ends else 0, len(text) - _LONGEST_MATCH) :]
    except OSError as error:
        raise DataUnreadable(str(file), f"cannot be read: {error.strerror}") from error
    return count


def _steps(task: Any, file: Path, number: int, position: int) -> Iterator[Step]:
    """Yield the steps of one task. ``number`` identifies the task in errors before its id is read."""
    place = f"{file.name}, task {number}"
    if not isinstance(task, Mapping):
        raise DataUnreadable(place, "must be an object")
    fields = RowFields(task, place)
    task_id = fields.text("annotation_id", needed=True)
    place = f"{file.name}, task {task_id}"
    fields = RowFields(task, place)
    reprs = fields.texts("action_reprs")
    actions = fields.given("actions")
    if not isinstance(actions, list):
        raise fields.error("actions", "must be a list of actions")
    website, domain = fields.text("website", needed=True), fields.text("domain")
    subdomain, description = fields.text("subdomain"), fields.text("confirmed_task", needed=True)
    for index, action in enumerate(actions):
        where = f"{place}, action {index}"
        if not isinstance(action, Mapping):
            raise DataUnreadable(where, "must be an object")
        own = RowFields(action, where)
        action_uid = own.text("action_uid", needed=True)
        where = f"{where} ({action_uid})"
        own = RowFields(action, where)
        op, value = _operation(own, where)
        yield Step(
            place=where,
            position=position + index,
            task_id=task_id,
            action_uid=action_uid,
            number=index,
            website=website,
            domain=domain,
            subdomain=subdomain,
            task=description,
            history=reprs[:index],
            page=own.text("cleaned_html", needed=True),
            op=op,
            value=value,
            positives=_candidates(own, "pos_candidates"),
            negatives=_candidates(own, "neg_candidates"),
        )


def _operation(action: RowFields, place: str) -> tuple[str, str]:
    given = action.given("operation")
    if isinstance(given, str):
        given = action.json("operation", given)
    if not isinstance(given, Mapping):
        raise action.error("operation", "must be an object with op and value")
    fields = RowFields(given, f"{place}, field operation")
    op = fields.text("op", needed=True)
    if op not in OPS:
        raise fields.error("op", f"must be one of {', '.join(sorted(OPS))}, not {op[:40]!r}")
    return op, fields.text("value")


def _candidates(action: RowFields, name: str) -> tuple[Candidate, ...]:
    listed = action.given(name)
    if not isinstance(listed, list):
        raise action.error(name, "must be a list of candidates")
    return tuple(_candidate(action, f"{name}.{number}", one) for number, one in enumerate(listed))


def _candidate(action: RowFields, name: str, given: Any) -> Candidate:
    one = action.json(name, given) if isinstance(given, str) else given
    if not isinstance(one, Mapping):
        raise action.error(name, "must be an object")
    id, rank = one.get("backend_node_id"), one.get("rank")
    if not isinstance(id, str) or not id:
        raise action.error(f"{name}.backend_node_id", "must be a non-empty string")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 0):
        raise action.error(f"{name}.rank", "must be an integer >= 0")
    tag = one.get("tag")
    return Candidate(id=id, tag=tag if isinstance(tag, str) else "", box=_box(action, name, one), rank=rank)


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
        found = _BOX.search(attributes)
        return found[1] if found else ""
    if not isinstance(attributes, Mapping):
        raise action.error(f"{name}.attributes", "must be a JSON object as a string")
    box = attributes.get("bounding_box_rect")
    return box if isinstance(box, str) else ""
