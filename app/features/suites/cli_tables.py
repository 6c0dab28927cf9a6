"""Console tables of Multimodal-Mind2Web~ figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.table import Table

from judges.suites.multimodal.report import PUBLISHED

_COLUMNS = ("element_accuracy", "operation_token_f1", "step_success")
_MAX_LISTED = 10


def tilde_table(metrics: Mapping[str, Any]) -> Table:
    """Return the figures, micro and macro, for each way of counting tokens.

    Figures are ranges if steps were not judged.
    """
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=_title(metrics), title_justify="left"
    )
    for heading in ("tokens", "mean over"):
        table.add_column(heading, no_wrap=True)
    for heading in ("element", "op F1", "step", "task"):
        table.add_column(heading, justify="right", no_wrap=True)
    for reading, values in metrics["readings"].items():
        chosen = " *" if reading == metrics["tokens"] else ""
        for mean, label in (("micro", "steps, micro"), ("macro", "tasks, macro")):
            cells = [_cell(values, f"{column}_{mean}") for column in _COLUMNS]
            table.add_row(reading.replace("_", " ") + chosen, label, *cells, _cell(values, "task_success"))
    return table


PUBLISHED_TITLE = "Published by the dataset authors (as far as known): task success, probably on test_website"


def published_table() -> Table:
    """Return the known rows of the published leaderboard."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model")
    table.add_column("tasks", justify="right")
    table.add_column("task success", justify="right")
    for model, tasks, rate in PUBLISHED:
        table.add_row(model, tasks if "/" in tasks else "", f"{100 * rate:.1f}")
    return table


def not_judged_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield unjudged steps, and answers to steps that do not exist."""
    missing = metrics["not_judged"]
    if missing["count"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in missing["by_reason"].items())
        yield f"{missing['count']} steps were not judged ({reasons}): ranges assume all wrong to all right"
        for step in missing["steps"][:_MAX_LISTED]:
            yield f"  {step['id']}  {step['reason']}: {step['detail']}"
    unknown = metrics["unknown_ids"]
    if unknown:
        more = f" and {len(unknown) - _MAX_LISTED} more" if len(unknown) > _MAX_LISTED else ""
        yield f"the data have no step {', '.join(unknown[:_MAX_LISTED])}{more}: these answers are ignored"


def _title(metrics: Mapping[str, Any]) -> str:
    splits = ", ".join(split for split in metrics["splits"] if split) or "no split named"
    return (
        f"{metrics['suite']}  {metrics['model'] or metrics['answers']}  {splits}  {metrics['n_steps']} steps, percent"
    )


def _cell(values: Mapping[str, Any], name: str) -> str:
    if name in values:
        return f"{100 * values[name]:.1f}"
    low, high = values["bounds"]["low"][name], values["bounds"]["high"][name]
    return f"{100 * low:.1f} .. {100 * high:.1f}" if low != high else f"{100 * low:.1f}"
