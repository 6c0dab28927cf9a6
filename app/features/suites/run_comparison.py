"""Comparison of two suite runs from their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from app.features.suites.reports import METRICS_FILE, PREDICTIONS_FILE
from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.json_items import read_items

SETTINGS: Final = (
    "suite", "split", "protocol", "metric", "no_positive", "top_k", "tokens", "temperature", "template", "seed",
    "model", "predictions", "answers",
)  # fmt: skip
"""Settings of a run that a comparison shows if they differ."""
_KEPT: Final = ("id", "task_id", "position", "status", "element_acc", "action_f1", "step_acc")
_FIGURES: Final = ("element_acc", "action_f1", "step_acc")


def read_run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the figures and the records of a run from its output folder, or from its predictions file. Blocks.

    The figures are empty if the folder has no file of figures. Records have no traces.

    Raises:
        DataMissing, DataUnreadable: a file is missing or malformed.
    """
    folder = path if path.is_dir() else path.parent
    records = [_record(entry, f"{path.name}, entry {number}") for number, entry in enumerate(read_items(
        path / PREDICTIONS_FILE if path.is_dir() else path
    ))]  # fmt: skip
    file = folder / METRICS_FILE
    try:
        metrics = json.loads(file.read_bytes()) if file.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise DataUnreadable(str(file), "is not the file of figures of a run") from error
    if not isinstance(metrics, dict):
        raise DataUnreadable(str(file), "is not the file of figures of a run")
    if not records:
        raise DataMissing(f"{path} contains no step")
    return metrics, records


def _record(entry: Any, place: str) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise DataUnreadable(place, f"must be an object, as in the {PREDICTIONS_FILE} of a run")
    record = {name: entry.get(name) for name in _KEPT}
    if not all(isinstance(record[name], str) for name in ("id", "task_id", "status")):
        raise DataUnreadable(place, f"must have id, task_id and status, as in the {PREDICTIONS_FILE} of a run")
    if not all(record[name] is None or isinstance(record[name], int | float) for name in _FIGURES):
        raise DataUnreadable(place, f"must have numbers or null as {', '.join(_FIGURES)}")
    return record


def differing_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings that differ between the figures of two runs."""
    return [
        {"setting": name, "a": first.get(name), "b": second.get(name)}
        for name in SETTINGS
        if first.get(name) != second.get(name)
    ]
