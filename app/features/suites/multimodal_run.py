"""Run of Multimodal-Mind2Web~ from its options to its figures. Shared by the command line and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.features.suites.multimodal import NAME, Survey, data_names, survey
from app.features.suites.records import Record
from app.features.suites.reports import not_judged, tool_version, usage
from judges.llm.providers import parse_model
from judges.suites.multimodal.protocol import request_params
from judges.suites.multimodal.readings import Counting, Reading
from judges.suites.multimodal.report import report


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeOptions:
    """Options of a run. Without ``split``, all rows are used. ``seed`` only affects the resampling of the intervals.

    ``model`` is ``provider/model``, or None if the answers in the file ``answers`` are scored.
    """

    data: Path
    split: str | None = None
    counting: Counting = Counting.SET
    seed: int = 0
    max_examples: int | None = None
    model: str | None = None
    answers: Path | None = None

    def open_data(self) -> Survey:
        """Read and validate the data. Blocks.

        Raises:
            DataMissing, DataUnreadable: the data cannot be used.
        """
        return survey(self.data, split=self.split, max_examples=self.max_examples)


def run_identity(options: TildeOptions, surveyed: Survey) -> dict[str, Any]:
    """Return the values that must be equal for the steps of an earlier run to be reused."""
    return {
        "suite": NAME,
        "model": options.model,
        "split": options.split,
        "tokens": str(options.counting),
        "max_examples": options.max_examples,
        "data": surveyed.digest,
    }


def figures(
    options: TildeOptions, surveyed: Survey, records: Sequence[Record], *, unknown: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the figures of a run with its options and data. Blocks."""
    missing = not_judged(records)
    model_name = None if options.model is None else parse_model(options.model).model
    return {
        "suite": NAME,
        "status": "incomplete" if missing["count"] else "complete",
        "model": options.model,
        "params": None if model_name is None else dict(request_params(model_name)),
        "answers": None if options.answers is None else options.answers.name,
        "split": options.split,
        "splits": list(surveyed.splits),
        "tokens": str(options.counting),
        "seed": options.seed,
        "max_examples": options.max_examples,
        "data": {"files": list(data_names(surveyed.data)), "sha256_of_rows": surveyed.digest},
        "tool_version": tool_version(),
        "n_rows": surveyed.all_rows,
        "n_valid": surveyed.all_rows - sum(surveyed.skipped.values()),
        "n_steps": len(surveyed.rows),
        "n_tasks_with_valid": surveyed.tasks,
        "skipped": dict(surveyed.skipped),
        **report(records, reading=Reading.of(options.counting), seed=options.seed),
        "not_judged": missing,
        "unknown_ids": list(unknown),
        "usage": usage(records),
    }


def summary_score(metrics: Mapping[str, Any]) -> float:
    """Return the figure for lists of runs: the lower bound of step success over all steps."""
    return float(metrics["bounds"]["low"]["step_success_micro"])
