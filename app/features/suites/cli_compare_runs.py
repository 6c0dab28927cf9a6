"""``assay suites compare``: compare two runs of a suite step by step and task by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.connection import JsonOption
from app.console.errors import WrongUsage
from app.console.streams import print_json, stdout_console
from app.console.tables import PlainTable, plain_table
from app.features.suites.records import differing_settings, read_run
from app.number_format import formatted
from judges.suites.step_metrics import compare_runs

_RUN = "its --output-dir, or its mind2web_predictions.json"
_MEANS = {"micro": "steps (micro)", "macro": "tasks (macro)"}
_MEASURES = {"element": "element", "operation": "operation", "step": "step success"}


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help=f"Baseline run: {_RUN}.")],
    second: Annotated[Path, typer.Argument(metavar="B", help=f"Other run: {_RUN}.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed for the resampling of the intervals.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs over the same data, paired by step and task. Differences are B - A."""
    for path in (first, second):
        if not path.exists():
            raise WrongUsage(f"{path}: no such file or folder")
    (before, a), (after, b) = read_run(first), read_run(second)
    document = {"settings": differing_settings(before, after), **compare_runs(a, b, seed=seed)}
    if as_json:
        print_json(document)
        return
    console = stdout_console()
    for part in _summary(document):
        console.print(part, markup=False, soft_wrap=isinstance(part, str))


def _summary(document: Mapping[str, Any]) -> Iterator[PlainTable | str]:
    for one in document["settings"]:
        yield f"{one['setting']}: A {one['a']}, B {one['b']}"
    if not document["steps"]:
        yield "no step was scored in both runs"
    else:
        yield _table(document)
        changes = document["changes"]
        yield (
            f"steps that succeed in both {changes['both']}, only in A {changes['only_a']}, "
            f"only in B {changes['only_b']}, in neither {changes['neither']}"
        )
    left_out = {
        "only in A": document["only_a"], "only in B": document["only_b"], "not scored in both": document["not_scored"],
    }  # fmt: skip
    if any(left_out.values()):
        yield "steps left out: " + ", ".join(f"{count} {what}" for what, count in left_out.items() if count)


def _table(document: Mapping[str, Any]) -> PlainTable:
    numbers = ("A", "B", "B - A", "95 % interval", "p")
    title = f"{document['steps']} steps of {document['tasks']} tasks in both runs, percent"
    table = plain_table("mean over", "figure", *numbers, right=numbers, title=title)
    for mean, label in _MEANS.items():
        for measure, name in _MEASURES.items():
            table.add_row(label, name, *_cells(document[mean][measure]))
    if document["task_success"] is not None:
        table.add_row(f"{document['task_success']['tasks']} tasks", "task success", *_cells(document["task_success"]))
    return table


def _cells(figure: Mapping[str, Any]) -> Iterator[str]:
    yield f"{100 * figure['a']:.1f}"
    yield f"{100 * figure['b']:.1f}"
    yield formatted(100 * figure["difference"], ".1f", sign="+")
    ends = figure["interval_95"]
    yield "-" if ends is None else " .. ".join(formatted(100 * ends[end], ".1f", sign="+") for end in ("low", "high"))
    yield "-" if figure["p"] is None else f"{figure['p']:.4f}"
