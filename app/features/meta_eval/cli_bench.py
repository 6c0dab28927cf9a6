"""``assay meta-eval bench``: compare judges on label sets, by agreement and by cost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
import typer.core
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.estimates import range_text, usd_text
from app.console.judging_options import ModelOptions, ReplayBudgetOption, judging_settings, quiet_logging
from app.console.safe_console import SafeConsole
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table
from app.csv_tables import to_csv
from app.features.meta_eval.measuring import LabelSet, Measurement
from app.settings import Settings
from judges.analysis.labels import LabelsUnreadable
from judges.analysis.meta_eval.bench import (
    COLUMNS,
    CSV_COLUMNS,
    bench_markdown,
    bench_notes,
    bench_report,
    bench_row,
    csv_cells,
    table_cells,
)
from judges.analysis.meta_eval.items import JudgedItem, PartialRule
from judges.result import write_json

_REPEATABLE: Final = ("--labels", "--model")
_FIRST_NUMBER: Final = 2
_QUALITY: Final = (0, 1, 2, 3, 4, 5, 6, 7)
_COST: Final = (0, 1, 8, 9, 10, 11, 12, 13)
"""Columns of the two tables in the terminal."""
_OUT_SUFFIXES: Final = (".md", ".csv", ".json")
VOTES = 3
"""Votes per claim when answers are judged."""


PartialOption: TypeAlias = Annotated[
    PartialRule, typer.Option("--partial", help="How partial support counts in labels and recorded verdicts.")
]


class BenchCommand(typer.core.TyperCommand):
    """Command that accepts several values after ``--labels`` and ``--model``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        expanded: list[str] = []
        option, has_value = "", False
        for arg in args:
            if arg.startswith("-"):
                option, has_value = (arg if arg in _REPEATABLE else ""), False
            elif option:
                if has_value:
                    expanded.append(option)
                has_value = True
            expanded.append(arg)
        return super().parse_args(ctx, expanded)


_LabelsOption: TypeAlias = Annotated[
    list[Path], typer.Option("--labels", metavar="FILE...", help="Label files, as written by import or the export.")
]
_ModelOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="MODEL...",
        help="provider/model to ask, or a jury a,b,c. Without it, only recorded verdicts are compared.",
    ),
]


_SampleOption: TypeAlias = Annotated[
    int | None, typer.Option("--sample", min=1, metavar="N", help="Use N random claims per set (default: all).")
]
_OutOption: TypeAlias = Annotated[
    list[Path] | None, typer.Option("--out", help="Also write the table to this .md, .csv or .json file; repeatable.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claims:
    """The labeled claims that the judges are compared on."""

    labels: _LabelsOption
    partial: PartialOption = PartialRule.FAILED
    sample: _SampleOption = None


def bench(
    *,
    claims: _Claims,
    model: _ModelOption = None,
    votes: Annotated[int, typer.Option(min=1, max=15, help="Votes per claim.")] = VOTES,
    model_option: ModelOptions = None,
    budget: ReplayBudgetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate requests, tokens and cost only.")] = False,
    out: _OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare judges on label sets. Show agreement, quotes found, price and time.

    Live models stand beside the verdicts recorded in the labels.
    """
    models = list(dict.fromkeys(model or ()))
    if dry_run and not models:
        raise WrongUsage("--dry-run requires at least one --model")
    for path in out or ():
        if path.suffix not in _OUT_SUFFIXES:
            raise WrongUsage(f"--out {path}: the name must end in {', '.join(_OUT_SUFFIXES)}")
    sets = [scan(path, name, claims.sample) for path, name in _names(claims.labels).items()]
    settings = judging_settings(model=models[0] if models else None, budget_usd=budget, model_options=model_option)
    quiet_logging(settings)
    run = Measurement(sets=sets, models=models, rule=claims.partial, votes=votes, listed=0)
    if dry_run:
        _print_estimates(run.estimate(settings), as_json=as_json)
        return
    measure_all(run, settings)
    _output(_report(run, settings, claims.sample), out or (), as_json=as_json)
    for name, failure in run.failures.items():
        stderr_console().print_line(f"stopped: {name}: {failure}")
    if run.is_incomplete:
        raise typer.Exit(Exit.INCOMPLETE)


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each label file: without folder and suffix if that is unique."""
    short = [path.name.removesuffix(".jsonl").removesuffix(".labels") for path in paths]
    return {path: name if short.count(name) == 1 else str(path) for path, name in zip(paths, short, strict=True)}


def scan(path: Path, name: str, sample: int | None = None) -> LabelSet:
    """Return the label set of a file. Raises WrongUsage if it cannot be read or has invalid lines."""
    try:
        return LabelSet.scan(path, name, sample)
    except LabelsUnreadable as error:
        raise WrongUsage(str(error), hint="\n".join(error.problems) or None) from error


def measure_all(run: Measurement, settings: Settings) -> None:
    """Measure the models, if there are any, and the recorded judges."""
    with event_loop.resumable("Received replies are saved; run the same command to resume."):
        if run.models:
            event_loop.run(run.ask(settings, show_progress))
        else:
            run.measure_recorded()


def _report(run: Measurement, settings: Settings, sample: int | None) -> dict[str, Any]:
    now = datetime.now(UTC)
    sets = [summary for summary, _ in run.measured]
    rows = [bench_row(summary["name"], one, settings.prices.of) for summary, judges in run.measured for one in judges]
    identity = hashlib.sha256(repr((now, sets, rows)).encode()).hexdigest()
    id = f"bench_{identity[:24]}"
    return bench_report(sets, rows, id=id, at=now, tool_version=version("assay"), rule=run.rule, sample=sample)


@contextmanager
def show_progress(name: str) -> Iterator[Callable[[JudgedItem], None]]:
    console = stderr_console()
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} claims judged"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task(escape(name), total=None)
        yield lambda _: progress.advance(bar)


def _output(report: Mapping[str, Any], out: Sequence[Path], *, as_json: bool) -> None:
    try:
        for path in out:
            if path.suffix == ".json":
                write_json(path, dict(report))
            elif path.suffix == ".md":
                path.write_text(bench_markdown(report), encoding="utf-8", newline="")
            else:
                path.write_text(to_csv(CSV_COLUMNS, map(csv_cells, report["rows"])), encoding="utf-8", newline="")
    except OSError as error:
        raise WrongUsage(f"Cannot write --out {path}: {error.strerror}") from error
    if as_json:
        print_json(report)
    else:
        _print(report)


def print_tables(console: SafeConsole, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of a bench report as two tables, because one is wider than a terminal."""
    for columns in (_QUALITY, _COST):
        headings = [COLUMNS[n] for n in columns]
        table = plain_table(*headings, right=[COLUMNS[n] for n in columns if n >= _FIRST_NUMBER])
        for row in rows:
            names, figures = table_cells(row)[:_FIRST_NUMBER], table_cells(row)[_FIRST_NUMBER:]
            cells = [*names, *(cell.replace(" [", "\n").rstrip("]").replace(", ", " to ") for cell in figures)]
            table.add_row(*(escape(cells[n]) for n in columns))
        console.print(table)


def _print(report: Mapping[str, Any]) -> None:
    console = stdout_console()
    for one in report["sets"]:
        left_out = ", ".join(f"{count} {name}" for name, count in one["left_out"].items() if count)
        console.print_line(
            f"{one['name']}: {one['usable']} of {counted(one['items'], 'claim')} usable"
            + (f" ({left_out})" if left_out else "")
        )

    print_tables(console, report["rows"])
    for note in bench_notes(report):
        console.print_line(note)
    console.print(f"Partial support counts by the rule {report['rule']}.", markup=False)


def _print_estimates(estimates: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"estimates": estimates})
        return
    for one in estimates:
        figures = ", ".join(
            f"{range_text(one[name])} {title}"
            for name, title in (("calls", "requests"), ("input_tokens", "tokens in"), ("output_tokens", "tokens out"))
        )
        usd = "price unknown" if one["usd"] is None else f"{usd_text(one['usd'])} USD"
        print_line(f"{one['set']}, {one['model']}: {counted(one['claims'], 'claim')}, {figures}, {usd}")
