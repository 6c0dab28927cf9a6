"""``assay suites mm-mind2web`` and ``assay suites build``: runs over Multimodal-Mind2Web~, and its snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.connection import JsonOption
from app.console.errors import WrongUsage
from app.console.streams import print_json, print_line, stderr_console
from app.console.tables import PlainTable, plain_table
from app.features.suites.cli_suite_run import RunOptions, percent_range, published_table, run_suite
from app.features.suites.mm_mind2web import MultimodalRun
from app.features.suites.run_options import MultimodalRunIn
from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from judges.suites.rules import Counting


def mm_mind2web(
    *,
    data: Annotated[
        Path | None, typer.Option(help="Rows in ~ format: a .parquet or .jsonl file, or a folder of them.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split, for example test_website (default: all).")] = None,
    tokens: Annotated[Counting, typer.Option(help="How tokens of operations are counted for F1.")] = Counting.SET,
    run: RunOptions,
) -> None:
    """Run a model over Multimodal-Mind2Web~. Two questions per step are scored as on its dataset card."""
    if data is None:
        raise WrongUsage(
            "--data is missing",
            hint="assay suites mm-mind2web --data FILE.parquet. Create the file with `assay suites build`.",
        )
    if not data.exists():
        raise WrongUsage(f"--data {data}: no such file or folder")

    run_suite(MultimodalRun, MultimodalRunIn, _summary, run, data=data, split=split, tokens=tokens)


def build(
    source: Annotated[
        Path, typer.Option("--from", help="Multimodal-Mind2Web rows: a .parquet or .jsonl file, or a folder of them.")
    ],
    out: Annotated[Path, typer.Option(help="Snapshot file to write: .parquet or .jsonl.")],
    distractors: Annotated[
        int, typer.Option(min=1, max=500, help="Number of wrong elements next to the gold element.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed for the selection of wrong elements.")] = 42,
    split: Annotated[str | None, typer.Option(help="Only rows of this split (default: all).")] = None,
    raw: Annotated[
        Path | None,
        typer.Option(help="Original Mind2Web dump, a JSON file or a folder of them, to take raw_html from."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a snapshot in ~ format from Multimodal-Mind2Web rows."""
    if not source.exists():
        raise WrongUsage(f"--from {source}: no such file or folder")
    if raw is not None and not raw.exists():
        raise WrongUsage(f"--raw {raw}: no such file or folder")

    console = stderr_console()
    with console.status("building") as status:
        built = build_snapshot(
            source,
            out,
            SamplingOptions(distractors=distractors, seed=seed),
            split=split,
            raw=raw,
            watch=lambda rows: status.update(f"{rows} rows"),
        )
    if as_json:
        print_json(built)
        return
    kept = built["without_raw_page"]
    raw_note = f"; {kept} are not in --raw and keep their raw_html" if kept else ""
    others = f"; left out: {built['other_splits']} rows of other splits" if built["other_splits"] else ""
    print_line(
        f"{out}: {built['rows']} rows of {built['tasks']} tasks, {built['valid']} valid; "
        f"not scored: {built['without_positive']} without a gold element on the page, "
        f"{built['without_screenshot']} without a screenshot{others}{raw_note}"
    )


def _summary(metrics: Mapping[str, Any]) -> Iterator[PlainTable | str]:
    yield tilde_table(metrics)
    yield published_table(metrics, PUBLISHED_TITLE)


_COLUMNS = ("element_accuracy", "operation_token_f1", "step_success")


def tilde_table(metrics: Mapping[str, Any]) -> PlainTable:
    """Return the figures, micro and macro, for each way of counting tokens.

    Figures are ranges if steps were not judged.
    """
    numbers = ("element", "op F1", "step", "task")
    table = plain_table("tokens", "mean over", *numbers, right=numbers, title=_title(metrics))
    for reading, values in metrics["readings"].items():
        chosen = " *" if reading == metrics["tokens"] else ""
        for mean, label in (("micro", "steps, micro"), ("macro", "tasks, macro")):
            cells = [_cell(values, f"{column}_{mean}") for column in _COLUMNS]
            table.add_row(reading.replace("_", " ") + chosen, label, *cells, _cell(values, "task_success"))
    return table


PUBLISHED_TITLE = "Published (dataset card; probably test_website), percent"


def _title(metrics: Mapping[str, Any]) -> str:
    splits = ", ".join(split for split in metrics["splits"] if split) or "no split named"
    return (
        f"{metrics['suite']}  {metrics['model'] or metrics['answers']}  {splits}  {metrics['n_steps']} steps, percent"
    )


def _cell(values: Mapping[str, Any], name: str) -> str:
    if name in values:
        return f"{100 * values[name]:.1f}"
    return percent_range(values["bounds"]["low"][name], values["bounds"]["high"][name])
