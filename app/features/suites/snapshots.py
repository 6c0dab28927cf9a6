"""Snapshot builder for the ~ format, which converts rows one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import read_rows
from judges.suites.multimodal.snapshot import SamplingOptions, open_writer, tilde_values
from judges.suites.multimodal.source_rows import COLUMNS, read_source_step

_SPLIT = re.compile(r"train|test_(?:task|website|domain)")


def build_snapshot(
    source: Path, out: Path, draw: SamplingOptions, *, split: str | None, watch: Callable[[int], None]
) -> dict[str, Any]:
    """Write a snapshot and return its counts. Without ``split``, it is taken from the row or the file name. Blocks.

    Raises:
        DataMissing, DataUnreadable, SnapshotUnwritable: no file is left behind.
    """
    tasks: set[str] = set()
    seen: dict[str, str] = {}
    counts = {"rows": 0, "valid": 0, "without_positive": 0, "without_screenshot": 0}
    with open_writer(out) as writer:
        for row in read_rows(source, (*COLUMNS, "split")):
            step = read_source_step(row.values, place=row.place)
            id = f"{step.task_id}:{step.step}"
            if id in seen:
                raise DataUnreadable(row.place, f"repeats step {id} of {seen[id]}")
            seen[id] = row.place
            values = tilde_values(step, draw, split=split or _split(row.values, row.place))
            writer.write(values)
            tasks.add(step.task_id)
            counts["rows"] += 1
            counts["valid"] += values["is_valid"]
            counts["without_positive"] += not values["target_elements"]
            counts["without_screenshot"] += step.screenshot is None
            watch(counts["rows"])
    return {**counts, "tasks": len(tasks), "distractors": draw.distractors, "seed": draw.seed}


def _split(values: dict[str, Any], place: str) -> str:
    """Return the split that the row or its file name contains."""
    split = values.get("split")
    if isinstance(split, str) and split:
        return split
    found = _SPLIT.search(place)
    return found[0] if found else ""
