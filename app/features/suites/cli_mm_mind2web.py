"""``assay mm-mind2web``: run a model over Multimodal-Mind2Web~, score answers from a file, build a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, Interrupted, WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.streams import print_json, stderr_console, stdout_console
from judges.suites.multimodal.readings import Counting

if TYPE_CHECKING:
    from app.features.suites.multimodal import TildeInput, TildeOptions
    from app.features.suites.records import Record
    from app.settings import Settings


JOURNAL_NAME = "mm_mind2web_steps.jsonl"


def program() -> typer.Typer:
    """Return the ``mm-mind2web`` command group."""
    group = typer.Typer(invoke_without_command=True, help="Multimodal-Mind2Web~: single web steps with screenshots.")
    group.callback()(mm_mind2web)
    group.command("build")(build)
    return group


def mm_mind2web(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="Rows in ~ format: a .parquet or .jsonl file, or a folder of them.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split, for example test_website. Default: all.")] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for figures, predictions and journal. An interrupted run resumes from it."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="provider/model. Default: ASSAY_MODEL.")] = None,
    tokens: Annotated[Counting, typer.Option(help="How tokens of operations are counted for F1.")] = Counting.SET,
    predictions: Annotated[
        Path | None, typer.Option(help="Score the answers in this file instead of asking a model.")
    ] = None,
    max_examples: Annotated[int | None, typer.Option(min=1, help="Maximum number of valid steps.")] = None,
    max_llm: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent model requests. Default: 30.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the resampling of the intervals.")] = 0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Disable the reply cache.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a model over Multimodal-Mind2Web~: two questions per step, scored as on its dataset card."""
    if context.invoked_subcommand is not None:
        return
    if data is None:
        raise WrongUsage(
            "--data is missing",
            hint="assay mm-mind2web --data FILE.parquet. Create the file with `assay mm-mind2web build`.",
        )
    if not data.exists():
        raise WrongUsage(f"--data {data}: no such file or folder")

    from app.features.suites.multimodal import TildeOptions

    settings = judging_settings(model=model, max_llm=max_llm, reply_cache_bytes=0 if no_cache else None)
    quiet_logging(settings)
    options = TildeOptions(
        data=data,
        split=split,
        counting=tokens,
        seed=seed,
        max_examples=max_examples,
        model=None if predictions else settings.model,
        answers=predictions,
    )
    run_input = options.open_input()
    _print_input(run_input, options)
    try:
        metrics = (
            _score_file(options, run_input, output_dir)
            if predictions
            else _ask_model(options, run_input, settings, output_dir)
        )
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. Finished steps are saved; run the same command to resume.") from None
    _print_figures(metrics, output_dir, as_json=as_json)
    if metrics["status"] == "incomplete":
        raise typer.Exit(Exit.INCOMPLETE)


def build(
    source: Annotated[
        Path, typer.Option("--from", help="Multimodal-Mind2Web rows: a .parquet or .jsonl file, or a folder of them.")
    ],
    out: Annotated[Path, typer.Option(help="Snapshot file to write: .parquet or .jsonl.")],
    distractors: Annotated[
        int, typer.Option(min=1, max=500, help="Number of wrong elements next to the gold element.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed for the selection of wrong elements.")] = 42,
    split: Annotated[str | None, typer.Option(help="Name of the split. Default: from the file names.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a snapshot in ~ format from Multimodal-Mind2Web rows."""
    if not source.exists():
        raise WrongUsage(f"--from {source}: no such file or folder")

    from app.features.suites.snapshots import build_snapshot
    from judges.suites.multimodal.snapshot import SamplingOptions

    console = stderr_console()
    with console.status("building") as status:
        built = build_snapshot(
            source,
            out,
            SamplingOptions(distractors=distractors, seed=seed),
            split=split,
            watch=lambda rows: status.update(f"{rows} rows"),
        )
    if as_json:
        print_json(built)
        return
    stdout_console().print(
        f"{out}: {built['rows']} rows of {built['tasks']} tasks, {built['valid']} valid; "
        f"not scored: {built['without_positive']} without a gold element on the page, "
        f"{built['without_screenshot']} without a screenshot",
        markup=False,
        soft_wrap=True,
    )


def _ask_model(options: TildeOptions, run_input: TildeInput, settings: Settings, folder: Path | None) -> dict[str, Any]:
    """Ask the model about the steps that the journal of the folder does not have."""
    from app.features.suites.journals import FileJournal, NoJournal
    from app.features.suites.multimodal import figures, run_identity
    from app.features.suites.reports import write_files

    if folder is None:
        return figures(options, run_input, event_loop.run(_run(options, run_input, settings, NoJournal())))
    journal = FileJournal.open(folder / JOURNAL_NAME, run_identity(options, run_input))
    try:
        metrics = figures(options, run_input, event_loop.run(_run(options, run_input, settings, journal)))
        write_files(folder, metrics, journal.records())
    finally:
        journal.close()
    return metrics


async def _run(options: TildeOptions, run_input: TildeInput, settings: Settings, journal: Any) -> list[dict[str, Any]]:
    from app.features.suites.cli_progress import StepProgress
    from app.features.suites.multimodal import TildePlan
    from app.features.suites.step_loop import open_suite_model, run_steps

    plan = TildePlan(run_input, counting=options.counting)
    async with open_suite_model(settings) as suite_model:
        with StepProgress(stderr_console()) as progress:
            return await run_steps(plan, journal, suite_model, max_concurrent=settings.max_llm, watcher=progress)


def _score_file(options: TildeOptions, run_input: TildeInput, folder: Path | None) -> dict[str, Any]:
    from app.features.suites.multimodal import PredictionsPlan, figures
    from app.features.suites.records import without_trace
    from app.features.suites.reports import write_files
    from judges.suites.multimodal.predictions import read_predictions

    assert options.answers is not None  # noqa: S101 - only called with a file
    answers = read_predictions(options.answers)
    plan = PredictionsPlan(run_input, answers, counting=options.counting)
    records: list[Record] = [plan.score(step) for step in plan.steps()]
    metrics = figures(options, run_input, [without_trace(record) for record in records], unknown=plan.unknown_ids())
    if folder is not None:
        write_files(folder, metrics, records)
    return metrics


def _print_input(run_input: TildeInput, options: TildeOptions) -> None:
    answered_by = f"answers of {options.answers}" if options.answers else options.model
    skipped = sum(run_input.skipped.values())
    console = stderr_console()
    console.print(
        f"{len(run_input.rows)} steps of {run_input.tasks} tasks by {answered_by}"
        f"{f'; {skipped} invalid rows are not counted' if skipped else ''}",
        markup=False,
        soft_wrap=True,
    )
    if len(run_input.splits) > 1:
        console.print(f"splits are mixed: {', '.join(run_input.splits)}; use --split to select one", markup=False)


def _print_figures(metrics: dict[str, Any], folder: Path | None, *, as_json: bool) -> None:
    from app.features.suites.cli_tables import PUBLISHED_TITLE, not_judged_lines, published_table, tilde_table

    if as_json:
        print_json(metrics)
        return
    console = stdout_console()
    console.print(tilde_table(metrics))
    console.print(PUBLISHED_TITLE, markup=False)
    console.print(published_table())
    for line in not_judged_lines(metrics):
        console.print(line, markup=False, soft_wrap=True)
    if folder is not None:
        console.print(f"figures and predictions: {folder}", markup=False, soft_wrap=True)
