"""Files of a run: its figures, and all steps with question, answer, gold answer and verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from app.features.suites.errors import RunUnwritable
from app.features.suites.records import TRACE, Record, StepStatus
from cache.atomic_files import atomic_path

METRICS_FILE = "mind2web_metrics.json"
PREDICTIONS_FILE = "mind2web_predictions.json"
MAX_LISTED = 200
"""Maximum number of unjudged steps listed in the figures. The predictions file lists all steps."""


def tool_version() -> str:
    return version("assay")


def not_judged_summary(records: Iterable[Record]) -> dict[str, Any]:
    """Return the number, reasons and ids of unjudged steps."""
    missing = [record for record in records if record["status"] == StepStatus.NOT_JUDGED]
    reasons: dict[str, int] = {}
    for record in missing:
        reasons[record["reason"]] = reasons.get(record["reason"], 0) + 1
    listed = [{name: record[name] for name in ("id", "reason", "detail")} for record in missing[:MAX_LISTED]]
    return {"count": len(missing), "by_reason": reasons, "steps": listed}


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
        RunUnwritable: a file cannot be written.
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


def prediction_json(record: Record) -> dict[str, Any]:
    """Return a record for the predictions file: the keys of the trace are moved to the top level."""
    return {**{name: value for name, value in record.items() if name != TRACE}, **record.get(TRACE, {})}


@contextmanager
def atomic_text_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that is written atomically.

    Raises:
        RunUnwritable: the file cannot be written.
    """
    try:
        with (
            atomic_path(path) as draft,
            draft.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
        ):
            yield file
    except OSError as error:
        raise RunUnwritable(f"{path}: {error.strerror}") from error
