"""Parts of ``assay suites mind2web`` and ``assay suites mm-mind2web``: options, estimate, run, and output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, TypeAlias

import typer
import yaml
from pydantic import ValidationError
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from app.console import event_loop
from app.console.connection import DryRunOption, JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.safe_console import SafeConsole
from app.console.streams import print_json, print_line, stderr_console, stdout_console
from app.console.tables import PlainTable, plain_table
from app.features.suites.journals import FileJournal, MemoryJournal
from app.features.suites.records import write_files
from app.features.suites.run_options import SuiteRunIn
from app.features.suites.suite_run import Journal, SuiteModel, SuiteRun, open_suite_model, run_steps
from app.settings import Settings
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.pricing import estimate_tokens
from judges.llm.providers import parse_model
from rubrics.verdict import Usage

_PRINT_INTERVAL_S: Final = 10.0
_MAX_LISTED: Final = 10
_CHARS_PER_TOKEN: Final = 3
_SHORT: Final = "Answer: A.\nELEMENT: Z"
"""Reply that picks no option: the tournament then has no further rounds."""
_LONG: Final = "Answer: B.\nAction: CLICK\nELEMENT: A\nACTION: CLICK\n"
"""Reply that always picks an option: the tournament then has as many rounds as possible."""
UNLIMITED_TOKENS: Final = 1_500
"""Assumed length of replies of models that are sent no limit."""


class StepProgress:
    """Display of the progress of steps. Use it as a context manager."""

    def __init__(self, console: SafeConsole, *, metric: str | None = None) -> None:
        """``metric`` is ``action`` if operations are scored by their accuracy and not by F1."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of the runs of both suites."""

    output_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for figures, predictions and journal. An interrupted run resumes from it."),
    ] = None
    model: Annotated[str | None, typer.Option(help="Model, as provider/model (default: ASSAY_MODEL).")] = None
    predictions: Annotated[
        Path | None, typer.Option(help="Score the predictions in this file instead of asking a model.")
    ] = None
    max_examples: Annotated[int | None, typer.Option(min=1, help="Maximum number of steps to evaluate.")] = None
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the intervals, and for the order of candidates in Mind2Web.")
    ] = 0
    max_llm: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent model requests (default: 30).")] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Disable the reply cache.")] = False
    dry_run: DryRunOption = False
    as_json: JsonOption = False


def _validated(options_class: type[SuiteRunIn], values: Mapping[str, Any]) -> SuiteRunIn:
    """Return the options of a run. None stands for the default.

    Raises:
        WrongUsage: a value is invalid.
    """
    given = {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
    try:
        return options_class.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        flag = str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
        raise WrongUsage(f"--{flag}: {first['msg']}") from error


def run_suite(
    run_class: Callable[[Any, Callable[[str], Path], Settings], SuiteRun[Any]],
    options_class: type[SuiteRunIn],
    summary: Callable[[Mapping[str, Any]], Iterable[PlainTable | str]],
    chosen: RunOptions,
    **values: Any,
) -> None:
    """Run a suite and print its figures, with the tables and lines of ``summary``. ``values`` are its own options.

    Raises:
        WrongUsage: an option is invalid, or a dry run is requested and predictions are scored, which needs no request.
        Interrupted: The user pressed Ctrl-C.
        typer.Exit: Steps were not judged.
    """
    reply_cache_bytes = 0 if chosen.no_cache else None
    settings = judging_settings(model=chosen.model, max_llm=chosen.max_llm, reply_cache_bytes=reply_cache_bytes)
    quiet_logging(settings)
    shared = {name: getattr(chosen, name) for name in ("predictions", "max_examples", "seed")}
    options = _validated(options_class, values | shared)
    folder, as_json = chosen.output_dir, chosen.as_json
    console = stderr_console()
    with console.status("validating the data"):
        run = run_class(options, Path, settings)
    for line in run.describe():
        console.print_line(line)
    if chosen.dry_run:
        _print_estimate(run, settings, as_json=as_json)
        return
    with event_loop.resumable("Finished steps are saved; run the same command to resume."):
        metrics = _judge(run, settings, folder)
    if as_json:
        print_json(metrics)
    else:
        output = [] if folder is None else [f"figures and predictions: {folder}"]
        console = stdout_console()
        for part in (*summary(metrics), *not_judged_lines(metrics), *output):
            console.print(part, markup=False, soft_wrap=isinstance(part, str))
    if metrics["status"] == "incomplete":
        raise typer.Exit(Exit.INCOMPLETE)


def _print_estimate(run: SuiteRun[Any], settings: Settings, *, as_json: bool) -> None:
    if run.model is None:
        raise WrongUsage("--dry-run: scoring --predictions sends no request; run without --dry-run")
    estimate = estimate_run(run, settings)
    if as_json:
        print_json(estimate)
    else:
        print_line(estimate_line(estimate))


class _CountingClient:
    """``LLMClient`` that sends nothing, counts tokens and always returns the same reply."""

    def __init__(self, text: str, *, fills_limit: bool) -> None:
        self._text = text
        self._fills_limit = fills_limit
        self.calls = self.input_tokens = self.output_tokens = 0

    async def complete(self, request: LLMRequest) -> LLMReply:
        limit = int(request.params.get("max_tokens") or UNLIMITED_TOKENS)
        text = self._text.ljust(_CHARS_PER_TOKEN * limit, "x") if self._fills_limit else self._text
        self.calls += 1
        self.input_tokens += estimate_tokens(request.messages)
        self.output_tokens += -(-len(text) // _CHARS_PER_TOKEN)
        return LLMReply(text=text, parsed=None, model=request.model, usage=Usage())

    async def aclose(self) -> None:
        """Do nothing."""


def estimate_run(run: SuiteRun[Any], settings: Settings) -> dict[str, Any]:
    """Return the lowest and highest calls, tokens and cost in USD. ``usd`` is None if the price is unknown. Blocks.

    Replies in a journal or in the reply cache are not taken into account: they cost nothing.
    """
    name = parse_model(settings.model).model
    ends = {"low": _CountingClient(_SHORT, fills_limit=False), "high": _CountingClient(_LONG, fills_limit=True)}
    for client in ends.values():
        suite_model = SuiteModel(client=client, model=name)
        event_loop.run(
            run_steps(run, MemoryJournal(), suite_model, max_concurrent=settings.max_llm, on_step=lambda *_, **__: None)
        )
    price = settings.prices.of(name)
    counted = {
        figure: {end: getattr(client, figure) for end, client in ends.items()}
        for figure in ("calls", "input_tokens", "output_tokens")
    }
    usd = price and {
        end: price.usd(input_tokens=client.input_tokens, output_tokens=client.output_tokens)
        for end, client in ends.items()
    }
    return {"model": settings.model, "steps": run.total, **counted, "usd": usd}


def estimate_line(estimate: Mapping[str, Any]) -> str:
    def spread(figure: str) -> str:
        low, high = estimate[figure]["low"], estimate[figure]["high"]
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    usd = estimate["usd"]
    cost = "price unknown (set it in ASSAY_PRICES)" if usd is None else f"{usd['low']:.4f} to {usd['high']:.4f} USD"
    return (
        f"{estimate['steps']} steps by {estimate['model']}: {spread('calls')} calls, {spread('input_tokens')} input "
        f"and {spread('output_tokens')} output tokens, {cost}. Nothing was sent."
    )


def _judge(run: SuiteRun[Any], settings: Settings, folder: Path | None) -> dict[str, Any]:
    """Judge the steps that the journal does not contain, write the files, and return the figures of all steps."""
    journal: FileJournal | MemoryJournal
    if folder is None or run.model is None:
        journal = MemoryJournal(keeps=folder is not None)
    else:
        journal = FileJournal.open(folder / f"{run.name.replace('-', '_')}_steps.jsonl", run.identity())
    try:
        records = event_loop.run(_judge_steps(run, settings, journal))
        metrics = run.figures(records)
        if folder is not None:
            # The journal can have more steps, from a run with more examples.
            ids = {record["id"] for record in records}
            write_files(folder, metrics, (record for record in journal.records() if record["id"] in ids))
            run.write_more(folder, metrics, (record for record in journal.records() if record["id"] in ids))
    finally:
        journal.close()
    return metrics


async def _judge_steps(run: SuiteRun[Any], settings: Settings, journal: Journal) -> list[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        suite_model = SuiteModel.without_model()
        if run.model is not None:
            suite_model = await stack.enter_async_context(open_suite_model(settings))
        shown = stack.enter_context(StepProgress(stderr_console(), metric=run.identity().get("metric")))
        return await run_steps(run, journal, suite_model, max_concurrent=settings.max_llm, on_step=shown.on_step)


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
