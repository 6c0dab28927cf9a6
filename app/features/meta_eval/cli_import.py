"""``assay meta-eval import``: turn a public label set into labels of this tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console.connection import JsonOption
from app.console.errors import WrongUsage
from app.console.streams import print_json, print_line
from judges.analysis.label_sets import SetFormat

if TYPE_CHECKING:
    from judges.analysis.label_sets.importing import ImportReport

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
    from judges.analysis.label_sets.importing import import_set
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
    print_line(f"{document['out']}: {document['written']} label(s) of {document['rows']} row(s)")
    print_line(f"  labels: {_counts(document['labels'])}")
    print_line(f"  in the set: {_counts(document['original_labels'])}")
    if document["repeated"]:
        print_line(f"  repeated rows: {document['repeated']}")
    for judge in document["judges"]:
        name = judge["model"] if judge["run"] is None else f"{judge['model']} ({judge['run']})"
        counts = {key: count for key, count in judge.items() if key not in ("model", "run", "rows", "used")}
        left_out = _counts({key: count for key, count in counts.items() if count})
        print_line(
            f"  judge {name}: {judge['used']} of {judge['rows']} verdict(s)" + (f" ({left_out})" if left_out else "")
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
