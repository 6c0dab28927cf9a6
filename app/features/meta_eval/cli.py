"""``assay meta-eval``: measure the agreement of judges with human labels, and import labels of other sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.answer_files import STDIN, STDIN_NAME, input_file
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage, check_output
from app.console.judging_options import ModelOptions, judging_settings, quiet_logging
from app.console.safe_console import SafeConsole
from app.console.streams import counted, print_json, print_line, stdout_console
from app.features.meta_eval.cli_bench import VOTES, PartialOption, measure_all, print_tables, scan
from app.features.meta_eval.measuring import Measurement
from cache.atomic_files import atomic_path
from judges.analysis.label_formats import SetFormat
from judges.analysis.label_import import ImportReport, import_set
from judges.analysis.labels import LabelsUnreadable
from judges.analysis.meta_eval.bench import bench_row, judge_name, report_json
from judges.analysis.meta_eval.items import PartialRule
from judges.result import write_json


def measure(
    *,
    labels: Annotated[
        Path,
        typer.Argument(
            help="File with labels, one JSON object per line, or - for standard input.", metavar="LABELS.jsonl"
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="provider/model to measure; repeatable. Without it, only recorded verdicts are measured.",
        ),
    ] = None,
    model_option: ModelOptions = None,
    votes: Annotated[int, typer.Option(min=1, max=15, help="Votes per claim.")] = VOTES,
    partial: PartialOption = PartialRule.FAILED,
    out: Annotated[Path | None, typer.Option(help="Also write the full report to this JSON file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure judges against labels. Show agreement with people, confusion matrix, cost and all disagreements."""
    check_output("--out", out)
    name = STDIN_NAME if labels == STDIN else labels.stem
    with input_file(labels) as file:
        models = list(dict.fromkeys(model or ()))
        label_set = scan(file, name)
        settings = judging_settings(model=models[0] if models else None, model_options=model_option)
        quiet_logging(settings)
        run = Measurement(sets=[label_set], models=models, rule=partial, votes=votes)
        measure_all(run, settings)
        for failure in run.failures.values():
            raise failure
        [(summary, judges)] = run.measured
        report = report_json(summary, judges, rule=partial)
        if as_json:
            print_json(report)
        else:
            rows = [bench_row(name, judge, settings.prices.of) for judge in judges]
            _print_report(stdout_console(), report, rows)
        _write(report, out)
        if run.is_incomplete:
            raise typer.Exit(Exit.INCOMPLETE)


def _write(report: dict[str, Any], out: Path | None) -> None:
    if out is not None:
        try:
            write_json(out, report)
        except OSError as error:
            raise WrongUsage(f"Cannot write --out {out}: {error.strerror}") from error


MAX_SHOWN = 20
"""Maximum number of printed disagreements per judge. ``--json`` has all of them."""


def _print_report(console: SafeConsole, report: dict[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the output of ``report_json``, and its judges as ``rows`` of the bench."""
    _print_labels(console, report["labels"])
    print_tables(console, rows)
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
        f"{judge_name(judge)}: labelled passed: {counts['true_positive']} judged passed, {counts['false_negative']} "
        f"judged failed; labelled failed: {counts['false_positive']} judged passed, {counts['true_negative']} judged "
        "failed",
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
