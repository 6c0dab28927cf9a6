"""``assay meta-eval bench``: compare judges on label sets, by agreement and by cost."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
import typer.core

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.estimates import range_text, usd_text
from app.console.judging_options import (
    EffortOption,
    MaxOutputOption,
    ReplayBudgetOption,
    TemperatureOption,
    judging_settings,
    quiet_logging,
)
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.engine.runtime import Runtime
    from app.features.meta_eval.judging import LiveJudge
    from app.settings import Settings
    from judges.analysis.labels import Label
    from judges.analysis.meta_eval.items import Item, JudgedItem, PartialRule
    from judges.analysis.meta_eval.judge_agreement import JudgeAgreement

_REPEATABLE: Final = ("--labels", "--model")
_FIRST_NUMBER: Final = 2
_QUALITY: Final = (0, 1, 2, 3, 4, 5, 6, 7)
_COST: Final = (0, 1, 8, 9, 10, 11, 12, 13)
"""Columns of the two tables in the terminal."""
_OUT_SUFFIXES: Final = (".md", ".csv", ".json")
VOTES = 3
"""Votes per claim when answers are judged."""


class PartialSupport(StrEnum):
    """How labels and verdicts of partial support count."""

    FAILED = "failed"
    PASSED = "passed"
    EXCLUDED = "excluded"


PartialOption: TypeAlias = Annotated[
    PartialSupport, typer.Option("--partial", help="How partial support counts in labels and recorded verdicts.")
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


def bench(
    labels: _LabelsOption,
    model: _ModelOption = None,
    partial: PartialOption = PartialSupport.FAILED,
    sample: _SampleOption = None,
    votes: Annotated[int, typer.Option(min=1, max=15, help="Votes per claim.")] = VOTES,
    reasoning_effort: EffortOption = None,
    temperature: TemperatureOption = None,
    max_output_tokens: MaxOutputOption = None,
    budget: ReplayBudgetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate requests, tokens and cost only.")] = False,
    out: _OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare judges on label sets. Show agreement, quotes found, price and time.

    Live models stand beside the verdicts recorded in the labels.

    The report is stored in the data folder, and the dashboard shows it on the page Judges.
    """
    models = list(dict.fromkeys(model or ()))
    _check(models, dry_run=dry_run, out=out or ())

    from judges.analysis.meta_eval.items import PartialRule

    sets = [_scan(path, name, sample) for path, name in _names(labels).items()]
    settings = judging_settings(
        model=models[0] if models else None,
        reasoning_effort=reasoning_effort,
        temperature=temperature,
        max_output_tokens=max_output_tokens,
        budget_usd=budget,
    )
    quiet_logging(settings)
    run = _Bench(
        sets=sets,
        models=models,
        rule=PartialRule.of(partial),
        votes=votes,
        sample=sample,
    )
    with event_loop.resumable("Received replies are saved; run the same command to resume."):
        if dry_run:
            _print_estimates(run.estimate(settings), as_json=as_json)
            return
        failures = event_loop.run(run.measure(settings)) if models else run.measure_recorded()
    report = run.report(settings)
    _output(report, out or (), as_json=as_json)
    for failure in failures:
        stderr_console().print_line(f"stopped: {failure}")
    is_incomplete = any(row["verdicts"] == "asked" and row["not_judged"]["by_reason"] for row in report["rows"])
    if failures or is_incomplete:
        raise typer.Exit(Exit.INCOMPLETE)


def _check(models: Sequence[str], *, dry_run: bool, out: Sequence[Path]) -> None:
    if dry_run and not models:
        raise WrongUsage("--dry-run requires at least one --model")
    for path in out:
        if path.suffix not in _OUT_SUFFIXES:
            raise WrongUsage(f"--out {path}: the name must end in {', '.join(_OUT_SUFFIXES)}")


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each label file: without folder and suffix if that is unique."""
    short = [path.name.removesuffix(".jsonl").removesuffix(".labels") for path in paths]
    return {path: name if short.count(name) == 1 else str(path) for path, name in zip(paths, short, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _LabelSet:
    """Label file that was read once. ``sampled`` are the keys of the claims to use, None: all."""

    path: Path
    name: str
    sha256: str
    has_stored_pages: bool
    sampled: frozenset[bytes] | None


def _scan(path: Path, name: str, sample: int | None) -> _LabelSet:
    """Read a label file once, and draw the sample: the claims whose keys are smallest, which are digests.

    Raises:
        WrongUsage: the file cannot be read or has invalid lines.
    """
    from judges.analysis.label_import import row_key
    from judges.analysis.labels import LabelsUnreadable, each_label, label_lines
    from judges.analysis.meta_eval.items import item_key

    digest, has_stored_pages = hashlib.sha256(), False
    drawn: list[int] = []
    kept: set[int] = set()

    def lines() -> Iterator[bytes]:
        for line in label_lines(path):
            digest.update(line)
            yield line

    try:
        for _, label in each_label(lines(), name=str(path)):
            has_stored_pages = has_stored_pages or any(page.page_id and page.text is None for page in label.pages)
            if sample is None:
                continue
            key = int.from_bytes(row_key(*item_key(label)))
            if key in kept or (len(drawn) == sample and key > -drawn[0]):
                continue
            kept.add(key)
            heapq.heappush(drawn, -key)
            if len(drawn) > sample:
                kept.discard(-heapq.heappop(drawn))
    except LabelsUnreadable as error:
        raise WrongUsage(str(error), hint="\n".join(error.problems) or None) from error
    sampled = None if sample is None else frozenset(key.to_bytes(16) for key in kept)
    return _LabelSet(
        path=path,
        name=name,
        sha256=digest.hexdigest(),
        has_stored_pages=has_stored_pages,
        sampled=sampled,
    )


def _batches(one: _LabelSet, rule: PartialRule) -> Iterator[tuple[Item, ...]]:
    """Yield the items of a set in batches of bounded size."""
    from judges.analysis.label_import import in_batches, row_key
    from judges.analysis.labels import each_label, label_lines, parse_labels
    from judges.analysis.meta_eval.items import item_key, items_of

    def rows() -> Iterator[tuple[bytes, bytes]]:
        for line, label in each_label(label_lines(one.path), name=str(one.path)):
            key = row_key(*item_key(label))
            if one.sampled is None or key in one.sampled:
                yield key, line

    def labels(batch: Sequence[tuple[bytes, bytes]]) -> Iterator[Label]:
        for _, line in batch:
            yield from parse_labels([line])

    for batch in in_batches(rows()):
        yield items_of(labels(batch), rule)


@dataclass(slots=True, kw_only=True)
class _Bench:
    """One run of the bench. ``measured`` has the summary of each set, and the agreement of each judge on it."""

    sets: Sequence[_LabelSet]
    models: Sequence[str]
    rule: PartialRule
    votes: int
    sample: int | None
    measured: list[tuple[dict[str, Any], list[JudgeAgreement]]] = field(default_factory=list)

    async def measure(self, settings: Settings) -> list[str]:
        """Measure the models and the recorded judges. Return why models could not be asked to the end."""
        from app.console.runtime import open_command_runtime
        from judges.errors import JudgeError

        failures: dict[str, str] = {}
        async with open_command_runtime(settings, shared=any(one.has_stored_pages for one in self.sets)) as runtime:
            self._live(runtime)  # detects a missing API key before any model request is paid for
            for one in self.sets:
                live = self._live(runtime)
                with _progress(one.name) as advance:
                    for items in self._counted(one, live):
                        for judge in live:
                            if judge.model in failures:
                                continue
                            try:
                                await judge.measure(items, advance)
                            except JudgeError as error:
                                failures[judge.model] = f"{judge.model}: {error}"
        return list(failures.values())

    def measure_recorded(self) -> list[str]:
        """Measure the recorded judges."""
        for one in self.sets:
            for _ in self._counted(one, ()):
                pass
        return []

    def estimate(self, settings: Settings) -> list[dict[str, Any]]:
        """Return the estimate of each model on each set. Sends nothing."""
        from app.engine.estimate import PageSize, estimate_claims
        from judges.voting import majority_of

        estimates = []
        for one in self.sets:
            claims, lengths = 0, list[int | None]()
            for batch in _batches(one, self.rule):
                usable = [item for item in batch if item.left_out is None]
                claims += len(usable)
                pages = (page for item in usable for page in item.label.pages)
                lengths += [None if page.text is None else len(page.text.encode()) for page in pages]
            known = [length for length in lengths if length is not None]
            sizes = [PageSize(sum(known) // len(known), 0)] if known else []
            for model in self.models:
                estimate = estimate_claims(
                    model,
                    (claims, claims),
                    [*sizes, *([None] if len(known) < len(lengths) else [])],
                    settings.prices,
                    votes=(majority_of(self.votes), self.votes),
                    extractions=False,
                    basis=f"{majority_of(self.votes)} to {self.votes} votes on each claim",
                )
                estimates.append({"set": one.name, "model": model, "claims": claims, **estimate.as_json()})
        return estimates

    def report(self, settings: Settings) -> dict[str, Any]:
        """Return the bench report."""
        from judges.analysis.meta_eval.bench import bench_report, bench_row

        now = datetime.now(UTC)
        rows: list[dict[str, Any]] = []
        for summary, judges in self.measured:
            rows += (bench_row(summary["name"], one, settings.prices.of) for one in judges)
        sets = [summary for summary, _ in self.measured]
        identity = hashlib.sha256(repr((now, sets, rows)).encode()).hexdigest()
        return bench_report(
            sets,
            rows,
            id=f"bench_{identity[:24]}",
            at=now,
            tool_version=version("assay"),
            rule=self.rule,
            sample=self.sample,
        )

    def _live(self, runtime: Runtime) -> list[LiveJudge]:
        from app.features.meta_eval.judging import LiveJudge

        return [LiveJudge(runtime, model, votes=self.votes, listed=0) for model in self.models]

    def _counted(self, one: _LabelSet, live: Sequence[LiveJudge]) -> Iterator[list[Item]]:
        """Yield the usable items of a set, count the recorded verdicts, and at the end store the measurement."""
        from judges.analysis.meta_eval.bench import SetTally
        from judges.analysis.meta_eval.judge_agreement import RecordedTallies

        summary, recorded = (
            SetTally(one.name),
            RecordedTallies(self.rule, listed=0),
        )
        for batch in _batches(one, self.rule):
            for item in batch:
                summary.add(item)
            usable = [item for item in batch if item.left_out is None]
            for item in usable:
                recorded.add(item)
            yield usable
        judges = [*(judge.result() for judge in live), *recorded.results()]
        self.measured.append((summary.as_json(one.sha256), judges))


@contextmanager
def _progress(name: str) -> Iterator[Callable[[JudgedItem], None]]:
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn

    console = stderr_console()
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} claims judged"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task(escape(name), total=None)
        yield lambda _: progress.advance(bar)


def _output(report: Mapping[str, Any], out: Sequence[Path], *, as_json: bool) -> None:
    from judges.analysis.meta_eval.bench import bench_markdown
    from judges.result import write_json

    try:
        for path in out:
            if path.suffix == ".json":
                write_json(path, dict(report))
            else:
                path.write_text(
                    bench_markdown(report) if path.suffix == ".md" else bench_csv(report), encoding="utf-8", newline=""
                )
    except OSError as error:
        raise WrongUsage(f"Cannot write --out {path}: {error.strerror}") from error
    if as_json:
        print_json(report)
    else:
        _print(report)


def bench_csv(report: Mapping[str, Any]) -> str:
    """Return the rows of a report as CSV."""
    from app.csv_tables import to_csv
    from judges.analysis.meta_eval.bench import CSV_COLUMNS, csv_cells

    return to_csv(CSV_COLUMNS, map(csv_cells, report["rows"]))


def _print(report: Mapping[str, Any]) -> None:
    from rich.markup import escape

    from judges.analysis.meta_eval.bench import COLUMNS, bench_notes, table_cells

    console = stdout_console()
    for one in report["sets"]:
        left_out = ", ".join(f"{count} {name}" for name, count in one["left_out"].items() if count)
        console.print_line(
            f"{one['name']}: {one['usable']} of {counted(one['items'], 'claim')} usable"
            + (f" ({left_out})" if left_out else "")
        )

    # Two tables, because one is wider than a terminal.
    for columns in (_QUALITY, _COST):
        headings = [COLUMNS[n] for n in columns]
        table = plain_table(*headings, right=[COLUMNS[n] for n in columns if n >= _FIRST_NUMBER])
        for row in report["rows"]:
            names, figures = table_cells(row)[:_FIRST_NUMBER], table_cells(row)[_FIRST_NUMBER:]
            cells = [*names, *(cell.replace(" [", "\n").rstrip("]").replace(", ", " to ") for cell in figures)]
            table.add_row(*(escape(cells[n]) for n in columns))
        console.print(table)
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
