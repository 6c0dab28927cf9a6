"""``assay meta-eval``: measure the agreement of judges with human labels, and import labels of other sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import (
    EffortOption,
    MaxOutputOption,
    TemperatureOption,
    judging_settings,
    quiet_logging,
)
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table
from app.features.meta_eval.cli_bench import VOTES, PartialOption, PartialSupport
from judges.analysis.set_format import SetFormat

if TYPE_CHECKING:
    from rich.progress import TaskID

    from app.console.safe_console import SafeConsole
    from app.settings import Settings
    from judges.analysis.labels import LabelFile
    from judges.analysis.meta_eval.items import Item, JudgedItem
    from judges.analysis.meta_eval.judge_agreement import JudgeAgreement
if TYPE_CHECKING:
    from judges.analysis.label_import import ImportReport


def measure(
    labels: Annotated[Path, typer.Argument(help="File with labels, one JSON object per line.", metavar="LABELS.jsonl")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="provider/model to measure; repeatable. Without it, only recorded verdicts are measured.",
        ),
    ] = None,
    reasoning_effort: EffortOption = None,
    temperature: TemperatureOption = None,
    max_output_tokens: MaxOutputOption = None,
    votes: Annotated[int, typer.Option(min=1, max=15, help="Votes per claim.")] = VOTES,
    partial: PartialOption = PartialSupport.FAILED,
    out: Annotated[Path | None, typer.Option(help="Also write the full report to this JSON file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure judges against labels. Show agreement with people, confusion matrix, cost and all disagreements."""
    models = list(dict.fromkeys(model or ()))
    file = _read(labels)

    from judges.analysis.meta_eval.bench import report_json
    from judges.analysis.meta_eval.items import PartialRule, items_of
    from judges.analysis.meta_eval.judge_agreement import agreement_of_recorded

    rule = PartialRule.of(partial)
    items = items_of(file.labels, rule)
    measured = list(agreement_of_recorded(items, rule))
    settings = judging_settings(
        model=models[0] if models else None,
        reasoning_effort=reasoning_effort,
        temperature=temperature,
        max_output_tokens=max_output_tokens,
    )
    quiet_logging(settings)
    if models:
        with event_loop.resumable("Received replies are saved; run the same command to resume."):
            measured = event_loop.run(_measure(settings, items, models, votes)) + measured
    report = report_json(labels.stem, file, items, measured, rule=rule)
    _print_and_write(report, out, as_json=as_json)
    if any(agreement.unjudged for agreement in measured if agreement.asked):
        raise typer.Exit(Exit.INCOMPLETE)


def _print_and_write(report: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    from judges.result import write_json

    if as_json:
        print_json(report)
    else:
        print_report(stdout_console(), report)
    if out is not None:
        try:
            write_json(out, report)
        except OSError as error:
            raise WrongUsage(f"Cannot write --out {out}: {error.strerror}") from error


def _read(path: Path) -> LabelFile:
    from judges.analysis.labels import LabelsUnreadable, read_labels

    try:
        return read_labels(path)
    except LabelsUnreadable as error:
        raise WrongUsage(str(error), hint="\n".join(error.problems) or None) from error


async def _measure(
    settings: Settings, items: Sequence[Item], models: Sequence[str], votes: int
) -> list[JudgeAgreement]:
    from rich.markup import escape
    from rich.progress import Progress

    from app.console.runtime import open_command_runtime
    from app.features.meta_eval.judging import LiveJudge

    # Captured pages are in the database of the service. Labels that contain the page text do not need it.
    stored = any(page.page_id and page.text is None for item in items for page in item.label.pages)
    usable = [item for item in items if item.left_out is None]
    async with open_command_runtime(settings, shared=stored) as runtime:
        # Detects a missing API key before any model request is paid for.
        judges = [LiveJudge(runtime, model, votes=votes) for model in models]
        console = stderr_console()
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            for judge in judges:
                bar = progress.add_task(escape(judge.model), total=len(usable))

                def advance(_: JudgedItem, bar: TaskID = bar) -> None:
                    progress.advance(bar)

                await judge.measure(usable, advance)
        return [judge.result() for judge in judges]


MAX_SHOWN = 20
"""Maximum number of printed disagreements per judge. ``--json`` has all of them."""

_FIGURES = ("raw", "kappa", "ac1", "tpr", "tnr")


def print_report(console: SafeConsole, report: dict[str, Any]) -> None:
    """Print the output of ``report_json``."""
    from rich.markup import escape

    _print_labels(console, report["labels"])
    numbers = ("n", "raw", "kappa", "AC1", "TPR", "TNR", "not judged", "USD")
    table = plain_table("judge", *numbers, right=numbers)
    for judge in report["judges"]:
        figures = (_figure(judge[name]) for name in _FIGURES)
        table.add_row(escape(_name(judge)), str(judge["n"]), *figures, str(len(judge["not_judged"])), _usd(judge))
    console.print(table)
    for judge in report["judges"]:
        _print_judge(console, judge)


def _print_labels(console: SafeConsole, labels: dict[str, Any]) -> None:
    left_out = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in labels["left_out"].items() if count)
    line = f"{counted(labels['labels'], 'label')} on {counted(labels['items'], 'claim')}, {labels['usable']} usable"
    console.print_line(f"{line} ({left_out})" if left_out else line)
    several = labels["labelled_by_several"]
    if several["items"]:
        console.print_line(
            f"claims with several labels on which people agree: {several['unanimous']} of {several['items']}"
        )


def _print_judge(console: SafeConsole, judge: dict[str, Any]) -> None:
    counts = judge["confusion"]
    console.print_line(
        f"{_name(judge)}: labelled passed: {counts['true_positive']} judged passed, {counts['false_negative']} judged "
        f"failed; labelled failed: {counts['false_positive']} judged passed, {counts['true_negative']} judged failed",
    )
    for disagreement in judge["disagreements"][:MAX_SHOWN]:
        location = " ".join(str(disagreement[key]) for key in ("task_id", "leaf") if disagreement[key])
        console.print_line(
            f"  judge {disagreement['judge']}, people {disagreement['human']}: {disagreement['claim']}  [{location}]",
        )
        for opinion in disagreement["people"]:
            if opinion["reason"]:
                console.print_line(f"      {opinion['reviewer'] or 'anonymous'}: {opinion['reason']}")
        if disagreement["judge_reasoning"]:
            console.print_line(f"      judge: {disagreement['judge_reasoning']}")
    if len(judge["disagreements"]) > MAX_SHOWN:
        console.print_line(f"  and {len(judge['disagreements']) - MAX_SHOWN} more: use --json to list all")
    for each in judge["not_judged"][:MAX_SHOWN]:
        console.print_line(f"  not judged ({each['reason']}): {each['claim']}  {each['detail']}")


def _name(judge: dict[str, Any]) -> str:
    return f"{judge['model']} (as recorded)" if judge["verdicts"] == "recorded" else str(judge["model"])


def _usd(judge: dict[str, Any]) -> str:
    if judge["verdicts"] == "recorded":
        return "-"
    usd = judge["usage"]["usd"]
    return "?" if usd is None else f"{usd:.4f}"


def _figure(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "-"
    if estimate["low"] is None:
        return f"{estimate['value']:.2f}"
    return f"{estimate['value']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


SUFFIX = ".labels.jsonl"


def import_labels(
    set_format: Annotated[SetFormat, typer.Argument(metavar="FORMAT", help="Format of the set.")],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of the set. For wikipedia, also the files of recorded judges."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help=f"Label file to write (default: name of the first file + {SUFFIX}).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import a label set, and report every row that cannot be used. Nothing is guessed."""
    target = out or Path(files[0].name.split(".")[0] + SUFFIX)
    if any(target.exists() and file.exists() and target.samefile(file) for file in files):
        raise WrongUsage(f"--out {target} is one of the imported files: choose another name")
    report = _import(set_format, files, target)
    document = {**report.as_json(), "out": str(target)}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _import(set_format: SetFormat, files: Sequence[Path], target: Path) -> ImportReport:
    """Write the label file atomically.

    Raises:
        WrongUsage: a file cannot be read, no row can be used, or the target cannot be written.
    """
    from cache.atomic_files import atomic_path
    from judges.analysis.label_import import import_set
    from judges.analysis.labels import LabelsUnreadable

    try:
        with atomic_path(target) as draft, draft.open("wb") as written:
            report = import_set(set_format, files, written)
            if not report.written:
                raise WrongUsage(
                    f"No row of {', '.join(report.files)} can be used as {set_format}: "
                    f"{_counts(report.as_json()['unusable'])}",
                    hint="\n".join(map(_example, report.as_json()["examples"][:5])) or None,
                )
    except LabelsUnreadable as error:
        raise WrongUsage(str(error), hint="Nothing was written.") from error
    except OSError as error:
        raise WrongUsage(f"Cannot write --out {target}: {error.strerror}") from error
    return report


def _print(document: Mapping[str, Any]) -> None:
    print_line(f"{document['out']}: {counted(document['written'], 'label')} of {counted(document['rows'], 'row')}")
    print_line(f"  labels: {_counts(document['labels'])}")
    print_line(f"  in the set: {_counts(document['original_labels'])}")
    if document["repeated"]:
        print_line(f"  repeated rows: {document['repeated']}")
    for judge in document["judges"]:
        name = judge["model"] if judge["run"] is None else f"{judge['model']} ({judge['run']})"
        counts = {key: count for key, count in judge.items() if key not in ("model", "run", "rows", "used")}
        left_out = _counts({key: count for key, count in counts.items() if count})
        print_line(
            f"  judge {name}: {judge['used']} of {counted(judge['rows'], 'verdict')}"
            + (f" ({left_out})" if left_out else "")
        )
    for title, counts in (("rows", document["unusable"]), ("verdicts", document["unusable_verdicts"])):
        if counts:
            print_line(f"  unusable {title}: {_counts(counts)}")
    for example in document["examples"]:
        print_line(f"    {_example(example)}")
    for warning in document["warnings"]:
        print_line(f"  warning: {warning}")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items())) or "none"


def _example(example: Mapping[str, Any]) -> str:
    return f"{example['file']}, row {example['row']}: {example['problem'].replace('_', ' ')}: {example['detail']}"
