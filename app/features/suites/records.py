"""Records of benchmark steps, and the files of a run: its figures, and all steps with question, answer and verdict.

A record is a JSON object. Each suite adds its own keys. ``trace`` contains the long values (prompts, raw outputs,
options) and is not kept in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

from app.errors import AppError
from cache.atomic_files import atomic_path
from judges.suites.errors import DataUnreadable, SuiteError
from judges.suites.json_items import read_items
from rubrics.verdict import Usage

Record: TypeAlias = Mapping[str, Any]
"""Keys: ``id`` (unique in the data), ``position``, ``task_id``, ``status``, ``reason``, ``detail``, ``element_acc``,
``action_f1``, ``step_acc`` (None unless scored), ``usage`` and ``trace``."""

TRACE: Final = "trace"
METRICS_FILE: Final = "mind2web_metrics.json"
PREDICTIONS_FILE: Final = "mind2web_predictions.json"
MAX_LISTED: Final = 200
"""Maximum number of unjudged steps listed in the figures. The predictions file lists all steps."""
SETTINGS: Final = (
    "suite", "split", "protocol", "metric", "no_positive", "top_k", "tokens", "temperature", "template", "seed",
    "model", "predictions", "answers",
)  # fmt: skip
"""Settings of a run that a comparison shows if they differ."""
FIGURES: Final = ("element_acc", "action_f1", "step_acc")
_COMPARED: Final = ("id", "task_id", "position", "status", *FIGURES)


class StepStatus(StrEnum):
    """Status of a step."""

    SCORED = "scored"
    SKIPPED = "skipped"
    """Excluded from all means by a rule of the suite, which ``reason`` names."""
    NOT_JUDGED = "not_judged"
    """Could not be judged. Counts in the bounds, and never as 0."""


def step_record(
    fields: Mapping[str, Any],
    trace: Mapping[str, Any],
    *,
    status: StepStatus,
    reason: str | None = None,
    detail: str = "",
    figures: tuple[float | None, float | None, float | None] = (None, None, None),
    usage: Usage | None = None,
) -> Record:
    """Return the record of a step. ``fields`` are its id, its place in the data, and the own keys of the suite."""
    return {
        **fields,
        "status": status.value,
        "reason": reason,
        "detail": detail,
        **dict(zip(FIGURES, figures, strict=True)),
        "usage": asdict(usage or Usage()),
        TRACE: trace,
    }


def without_trace(record: Record) -> dict[str, Any]:
    """Return the part of a record that stays in memory."""
    return {name: value for name, value in record.items() if name != TRACE}


def prediction_json(record: Record) -> dict[str, Any]:
    """Return a record for the predictions file: the keys of the trace are moved to the top level."""
    return {**without_trace(record), **record.get(TRACE, {})}


def not_judged_summary(records: Iterable[Record]) -> dict[str, Any]:
    """Return the number, reasons and ids of unjudged steps."""
    missing = [record for record in records if record["status"] == StepStatus.NOT_JUDGED]
    listed = [{name: record[name] for name in ("id", "reason", "detail")} for record in missing[:MAX_LISTED]]
    reasons = Counter(record["reason"] for record in missing)
    return {"count": len(missing), "by_reason": dict(reasons), "steps": listed}


def total_usage(records: Sequence[Record]) -> dict[str, Any]:
    """Return the total usage. ``usd`` is None if a price is unknown."""
    parts = [record["usage"] for record in records if record.get("usage")]
    names = ("calls", "cached_calls", "input_tokens", "output_tokens")
    total: dict[str, Any] = {name: sum(part[name] for part in parts) for name in names}
    prices = [part["usd"] for part in parts]
    return {**total, "usd": None if None in prices else sum(prices)}


def write_files(folder: Path, metrics: Mapping[str, Any], records: Iterable[Record]) -> None:
    """Write both files atomically. Blocks.

    Raises:
        AppError: a file cannot be written.
    """
    with atomic_text_file(folder / PREDICTIONS_FILE) as file:
        file.write("[")
        for number, record in enumerate(records):
            file.write(",\n" if number else "\n")
            json.dump(prediction_json(record), file, ensure_ascii=False)
        file.write("\n]\n")
    with atomic_text_file(folder / METRICS_FILE) as file:
        json.dump(metrics, file, ensure_ascii=False, indent=2)
        file.write("\n")


@contextmanager
def atomic_text_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that is written atomically.

    Raises:
        AppError: the file cannot be written.
    """
    try:
        with (
            atomic_path(path) as draft,
            draft.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
        ):
            yield file
    except OSError as error:
        raise AppError(f"{path}: {error.strerror}") from error


def read_run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the figures and the records of a run from its output folder, or from its predictions file. Blocks.

    The figures are empty if the folder has no file of figures. Records have no traces.

    Raises:
        SuiteError: a file is missing or malformed.
    """
    folder, file = (path, path / PREDICTIONS_FILE) if path.is_dir() else (path.parent, path)
    entries = enumerate(read_items(file))
    records = [_compared(entry, f"{path.name}, entry {number}") for number, entry in entries]
    figures = folder / METRICS_FILE
    try:
        metrics = json.loads(figures.read_bytes()) if figures.is_file() else {}
    except (OSError, ValueError, RecursionError):
        metrics = None
    if not isinstance(metrics, dict):
        raise DataUnreadable(str(figures), "is not the file of figures of a run")
    if not records:
        raise SuiteError(f"{path} contains no step")
    return metrics, records


def _compared(entry: Any, place: str) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise DataUnreadable(place, f"must be an object, as in the {PREDICTIONS_FILE} of a run")
    record = {name: entry.get(name) for name in _COMPARED}
    if not all(isinstance(record[name], str) for name in ("id", "task_id", "status")):
        raise DataUnreadable(place, f"must have id, task_id and status, as in the {PREDICTIONS_FILE} of a run")
    if not all(record[name] is None or isinstance(record[name], int | float) for name in FIGURES):
        raise DataUnreadable(place, f"must have numbers or null as {', '.join(FIGURES)}")
    return record


def differing_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings that differ between the figures of two runs."""
    return [
        {"setting": name, "a": first.get(name), "b": second.get(name)}
        for name in SETTINGS
        if first.get(name) != second.get(name)
    ]
