"""Comparison of two suite runs from their files, and the leaderboard of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.features.suites.reports import METRICS_FILE, PREDICTIONS_FILE
from app.features.suites.seeds import headline
from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.json_items import read_items

SETTINGS: Final = (
    "suite", "split", "protocol", "metric", "no_positive", "top_k", "tokens", "temperature", "template", "seed",
    "seeds", "model", "predictions", "answers",
)  # fmt: skip
"""Settings of a run that a comparison shows if they differ."""
_KEPT: Final = ("id", "task_id", "position", "seed", "status", "element_acc", "action_f1", "step_acc")
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


GROUP: Final = ("split", "protocol", "metric", "no_positive", "tokens")
"""Settings that must be equal for runs to be ranked together."""
_RANKED_BY: Final = ("step_success_macro", "step_success_micro")


def leaderboard(runs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the groups of a leaderboard from (run, figures) pairs, newest run first.

    A run is ``id``, ``result_id``, ``run`` (its label) and ``created_at``. Only the newest run of each model and label
    counts. Runs are ranked by step success over tasks; a run with steps that were not judged has no rank.
    """
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[str, Any]]] = {}
    published: dict[tuple[Any, ...], Sequence[Any]] = {}
    for run, figures in runs:
        key = tuple(_setting(figures, name) for name in GROUP)
        entry = _entry(run, figures)
        groups.setdefault(key, {}).setdefault((entry["model"], entry["run"]), entry)
        published.setdefault(key, figures.get("published") or ())
    return [
        {**dict(zip(GROUP, key, strict=True)), "items": list(_ranked(entries.values())), "published": published[key]}
        for key, entries in sorted(groups.items(), key=lambda item: str(item[0]))
    ]


def _setting(figures: Mapping[str, Any], name: str) -> Any:
    value = figures.get(name)
    if name == "split" and value is None:
        return ", ".join(str(split) for split in figures.get("splits") or () if split) or None
    return value


def _entry(run: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    source = figures.get("predictions") or figures.get("answers")
    return {
        **run,
        "model": figures.get("model") or f"answers of {source}",
        "status": figures["status"],
        "steps": figures.get("n_steps"),
        "seeds": figures.get("seeds") or [figures.get("seed")],
        "figures": headline(figures),
        "intervals_95": figures.get("intervals_95"),
        "over_seeds": figures.get("over_seeds"),
        "usd": (figures.get("usage") or {}).get("usd"),
    }


def _ranked(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    def score(entry: Mapping[str, Any]) -> float:
        value = next((entry["figures"][name] for name in _RANKED_BY if entry["figures"].get(name) is not None), None)
        return -1.0 if value is None else float(value)

    rank = 0
    for place, entry in enumerate(ordered := sorted(entries, key=score, reverse=True), start=1):
        if place == 1 or score(entry) < score(ordered[place - 2]):
            rank = place
        yield {"rank": None if score(entry) < 0 else rank, **entry}
