"""Raw pages of the original Mind2Web dump, by task and action.

In the test splits of Multimodal-Mind2Web, ``raw_html`` is a copy of ``cleaned_html``. The page itself, with elements
that cleaning removed, is only in the dump (contracts/mind2web.md, pitfall 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.json_items import item_spans, read_item
from judges.suites.multimodal.tilde_rows import RowFields


class RawPages:
    """Pages of a JSON file of tasks, or of all such files in a folder. Keeps only the places of the tasks in memory."""

    def __init__(self, path: Path) -> None:
        """Read the files once to find the tasks. Blocks.

        Raises:
            DataMissing: there is no file.
            DataUnreadable: a file is not a list of tasks.
        """
        files = [path] if path.is_file() else sorted(path.rglob("*.json"))
        if not files:
            raise DataMissing(f"{path}: there is no .json file of the Mind2Web dump")
        self._places: dict[str, tuple[Path, int, tuple[int, int]]] = {}
        for file in files:
            for number, (span, task) in enumerate(item_spans(file)):
                self._places.setdefault(
                    _task(task, file, number).text("annotation_id", needed=True), (file, number, span)
                )
        self._pages = lru_cache(maxsize=4)(self._read)

    def of(self, task_id: str, action_uid: str) -> str | None:
        """Return the raw page of an action, or None if the dump lacks it. Blocks.

        Raises:
            DataMissing, DataUnreadable: the file has changed, or the task is malformed.
        """
        return self._pages(task_id).get(action_uid) if task_id in self._places else None

    def _read(self, task_id: str) -> dict[str, str]:
        file, number, span = self._places[task_id]
        actions = _task(read_item(file, span), file, number).given("actions")
        place = f"{file.name}, task {task_id}"
        if not isinstance(actions, list):
            raise DataUnreadable(f"{place}, field actions", "must be a list of actions")
        fields = [_object(action, f"{place}, action {index}") for index, action in enumerate(actions)]
        pages = {action.text("action_uid", needed=True): action.text("raw_html") for action in fields}
        return {uid: page for uid, page in pages.items() if page}


def _task(value: Any, file: Path, number: int) -> RowFields:
    return _object(value, f"{file.name}, task {number}")


def _object(value: Any, place: str) -> RowFields:
    if not isinstance(value, Mapping):
        raise DataUnreadable(place, "must be an object")
    return RowFields(value, place)
