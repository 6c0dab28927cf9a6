"""Parts of ``assay suites mind2web`` and ``assay suites mm-mind2web``: options, a run with a journal, and output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypeVar

import typer

from app.console import event_loop
from app.console.errors import Exit, WrongUsage
from app.console.streams import print_json, print_line, stderr_console, stdout_console
from app.console.tables import PlainTable, plain_table

if TYPE_CHECKING:
    from app.console.safe_console import SafeConsole
    from app.features.suites.records import Record
    from app.features.suites.step_loop import Journal, Plan
    from app.settings import Settings


I_co = TypeVar("I_co", covariant=True)
_PRINT_INTERVAL_S = 10.0


class StepProgress:
    """Display of the progress of steps. Use it as a context manager."""

    def __init__(self, console: SafeConsole, *, metric: str | None = None) -> None:
        """``metric`` is ``action`` if operations are scored by their accuracy and not by F1."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._names = ("ele", "action" if metric == "action" else "f1", "step")
        self._console = console
        self._live = console.is_terminal
        self._sums = {"element_acc": 0.0, "action_f1": 0.0, "step_acc": 0.0}
        self._scored = self._not_judged = self._reused = 0
        self._printed_at = time.monotonic()
        self._bar = Progress(
            TextColumn("steps"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task("steps", total=None, figures="")

    def __enter__(self) -> StepProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def on_step(self, record: Mapping[str, Any], *, done: int, total: int, reused: bool) -> None:
        """Record a finished step."""
        self._reused += reused
        if record["status"] == "scored":
            self._scored += 1
            for name in self._sums:
                self._sums[name] += float(record[name])
        elif record["status"] == "not_judged":
            self._not_judged += 1
        self._bar.update(self._task, completed=done, total=total, figures=self.figures)
        now = time.monotonic()
        if not self._live and (done == total or now - self._printed_at >= _PRINT_INTERVAL_S):
            self._printed_at = now
            self._console.print_line(f"{done}/{total} steps  {self.figures}")

    @property
    def figures(self) -> str:
        """Current means, for example ``ele 0.812 f1 0.903 step 0.774``, and the number of unjudged and reused steps.

        ``action`` instead of ``f1`` is the accuracy of the action without its value.
        """
        means = [total / self._scored if self._scored else 0.0 for total in self._sums.values()]
        figures = [f"{name} {value:.3f}" for name, value in zip(self._names, means, strict=True)]
        notes = [
            f"{count} {what}" for count, what in ((self._not_judged, "not judged"), (self._reused, "reused")) if count
        ]
        return "  ".join([*figures, *notes])


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the values of a YAML file defaults of the flags. Its keys are the names of flags.

    Raises:
        WrongUsage: the file is not a YAML object, a key is not a flag, or a value is not a single value.
    """
    if path is None or context.resilient_parsing:
        return path
    import yaml

    try:
        values = yaml.safe_load(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        problem = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise WrongUsage(f"--config {path}: cannot be read: {problem}") from error
    if not isinstance(values, dict):
        raise WrongUsage(f"--config {path}: must be a YAML object, for example 'top-k: 50'")
    flags = {
        opt.lstrip("-"): flag
        for flag in context.command.params
        for opt in flag.opts
        if opt not in ("--config", "--help")
    }
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        flag = flags.get(str(key).replace("_", "-"))
        if flag is None or flag.name is None:
            raise WrongUsage(f"--config {path}: unknown key {str(key)!r}: use {', '.join(sorted(flags))}")
        if not isinstance(value, str | int | float | None):
            raise WrongUsage(
                f"--config {path}: {key} must be a string, number or boolean; write other values in quotes"
            )
        if value is not None:
            defaults[flag.name] = value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=load_config,
        help="YAML file with defaults; its keys are the names of the flags.",
    ),
]
OutputDirOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output-dir", help="Folder for figures, predictions and journal. An interrupted run resumes from it."
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", help="Model, as provider/model (default: ASSAY_MODEL).")
]
MaxLlmOption: TypeAlias = Annotated[
    int | None, typer.Option("--max-llm", min=1, help="Maximum concurrent model requests (default: 30).")
]
NoCacheOption: TypeAlias = Annotated[bool, typer.Option("--no-cache", help="Disable the reply cache.")]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost without asking the model.")
]
_MAX_LISTED = 10


def ask_model(
    plan: Plan[Any],
    settings: Settings,
    journal_file: Path | None,
    *,
    identity: Mapping[str, Any],
    figures: Callable[[Sequence[Record]], dict[str, Any]],
    write_more: Callable[[Path, dict[str, Any], Iterator[Record]], None] = lambda folder, metrics, records: None,
) -> dict[str, Any]:
    """Ask the model about the steps that the journal does not contain, and return the figures of all steps.

    With a journal, the files of the run are written to its folder. ``write_more`` writes further ones from the figures
    and the complete records.
    """
    from app.features.suites.journals import FileJournal, NoJournal
    from app.features.suites.reports import write_files

    if journal_file is None:
        return figures(event_loop.run(_judge_steps(plan, settings, NoJournal(), identity.get("metric"))))
    journal, folder = FileJournal.open(journal_file, identity), journal_file.parent
    try:
        records = event_loop.run(_judge_steps(plan, settings, journal, identity.get("metric")))
        metrics = figures(records)
        ids = {record["id"] for record in records}  # the journal can have more steps, from a run with more examples

        def own() -> Iterator[Record]:
            return (record for record in journal.records() if record["id"] in ids)

        write_files(folder, metrics, own())
        write_more(folder, metrics, own())
    finally:
        journal.close()
    return metrics


class _Options(Protocol[I_co]):
    def open_input(self) -> I_co: ...


def open_validated(options: _Options[I_co]) -> I_co:
    """Return the input of a run after validating all its data."""
    with stderr_console().status("validating the data"):
        return options.open_input()


def print_estimate(plan: Plan[Any], settings: Settings, predictions: Path | None, *, as_json: bool) -> None:
    """Print the estimate of a run.

    Raises:
        WrongUsage: predictions are scored, which needs no request.
    """
    from app.features.suites.dry_run import estimate_line, estimate_run

    if predictions is not None:
        raise WrongUsage("--dry-run: scoring --predictions sends no request; run without --dry-run")
    estimate = estimate_run(plan, settings)
    if as_json:
        print_json(estimate)
    else:
        print_line(estimate_line(estimate))


async def _judge_steps(
    plan: Plan[Any], settings: Settings, journal: Journal, metric: str | None
) -> list[dict[str, Any]]:
    from app.features.suites.step_loop import open_suite_model, run_steps

    async with open_suite_model(settings) as suite_model:
        with StepProgress(stderr_console(), metric=metric) as shown:
            return await run_steps(plan, journal, suite_model, max_concurrent=settings.max_llm, on_step=shown.on_step)


def run_and_print(
    compute: Callable[[], dict[str, Any]],
    summary: Callable[[Mapping[str, Any]], Iterable[PlainTable | str]],
    folder: Path | None,
    *,
    as_json: bool,
) -> None:
    """Compute figures and print them, with the tables and lines of ``summary``. ``folder`` is the output folder.

    Raises:
        Interrupted: The user pressed Ctrl-C.
        typer.Exit: Steps were not judged.
    """
    with event_loop.resumable("Finished steps are saved; run the same command to resume."):
        metrics = compute()
    if as_json:
        print_json(metrics)
    else:
        output = [] if folder is None else [f"figures and predictions: {folder}"]
        console = stdout_console()
        for part in (*summary(metrics), *not_judged_lines(metrics), *output):
            console.print(part, markup=False, soft_wrap=isinstance(part, str))
    if metrics["status"] == "incomplete":
        raise typer.Exit(Exit.INCOMPLETE)


def published_table(metrics: Mapping[str, Any], title: str) -> PlainTable:
    """Return the published figures."""
    numbers = ("element acc", "op F1", "step success", "task success")
    table = plain_table("system", "candidates", *numbers, right=numbers, title=title)
    for row in metrics["published"]:
        figures = (row[name] for name in ("element_acc", "op_f1", "step_success", "task_success"))
        table.add_row(row["system"], row["setting"], *("" if value is None else f"{value:.1f}" for value in figures))
    return table


def percent_range(low: float, high: float) -> str:
    """Return a share from 0 to 1 in percent, as a range if it is not known exactly."""
    return f"{100 * low:.1f} .. {100 * high:.1f}" if low != high else f"{100 * low:.1f}"


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
        unlisted_note = f" and {len(unknown) - _MAX_LISTED} more" if len(unknown) > _MAX_LISTED else ""
        yield f"the data have no step {', '.join(unknown[:_MAX_LISTED])}{unlisted_note}: these answers are ignored"
