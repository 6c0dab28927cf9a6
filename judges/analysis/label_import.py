"""Import of a label set: its rows become label lines, and everything that is left out is counted. Blocks on the disk.

The rows are read one at a time. Recorded verdicts are joined to their claims, and contradicting labels are found, with
``grouped_rows``, which keeps the rows on the disk.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from judges.analysis.label_formats import (
    Problem,
    SetFormat,
    SourceRow,
    UnusableRow,
    is_verdict,
    label_of,
    parse_verdict,
    read_rows,
)
from judges.analysis.labels import HumanDecision, Label, RecordedVerdict, label_line, parse_labels
from judges.analysis.meta_eval.items import one_per_judge

Row: TypeAlias = tuple[bytes, bytes]
"""Key and content of a row."""


def row_key(*values: object) -> bytes:
    """Return a key of 16 bytes, which is equal for equal values."""
    return hashlib.blake2b(repr(values).encode("utf-8", "replace"), digest_size=16).digest()


def grouped_rows(rows: Iterable[Row]) -> Iterator[list[bytes]]:
    """Yield the contents of the rows of each key, in order of first appearance. Blocks on the disk.

    The contents are kept in a temporary file, and only their places in memory.
    """
    places: dict[bytes, list[tuple[int, int]]] = {}
    with tempfile.TemporaryFile(prefix="assay-labels-") as file:
        for key, content in rows:
            places.setdefault(key, []).append((file.tell(), len(content)))
            file.write(content)
        for spans in places.values():
            contents = []
            for start, length in spans:
                file.seek(start)
                contents.append(file.read(length))
            yield contents


MAX_EXAMPLES: Final = 20


@dataclass(slots=True, kw_only=True)
class VerdictCounts:
    """Recorded verdicts of one judge.

    ``rows`` is the number of valid rows, ``used`` of verdicts in the labels. ``unknown_claim`` counts verdicts on rows
    that are not in the set or not usable, ``repeated`` equal verdicts on one claim, and ``contradicting`` claims with
    verdicts that differ, all of which are left out.
    """

    rows: int = 0
    used: int = 0
    unknown_claim: int = 0
    repeated: int = 0
    contradicting: int = 0


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """Result of an import.

    ``labels`` counts the written labels by decision, ``originals`` by the label of the set. ``unusable`` counts rows by
    reason and ``unusable_verdicts`` rows of recorded judges. ``repeated`` counts rows that repeat another one with the
    same label.
    """

    format: SetFormat
    files: list[str]
    rows: int = 0
    written: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    originals: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    unusable_verdicts: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    judges: dict[tuple[str, str], VerdictCounts] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """Return what limits the use of the labels."""
        warnings = []
        if self.written and len(self.labels) == 1:
            warnings.append(f"all labels are {next(iter(self.labels))!r}: kappa and one of TPR and TNR have no value")
        if self.unusable[Problem.CONTRADICTING]:
            warnings.append(
                f"rows left out because they contradict another row: {self.unusable[Problem.CONTRADICTING]}"
            )
        return warnings

    def note(self, row: SourceRow, error: UnusableRow, counts: Counter[str]) -> None:
        """Count an unusable row."""
        counts[error.problem] += 1
        if len(self.examples) < MAX_EXAMPLES:
            place = {"file": row.file, "row": row.number}
            self.examples.append({**place, "problem": error.problem.value, "detail": error.detail})

    def judge(self, judge: tuple[str, str]) -> VerdictCounts:
        return self.judges.setdefault(judge, VerdictCounts())

    def as_json(self) -> dict[str, Any]:
        return {
            "format": self.format.value,
            "files": self.files,
            "rows": self.rows,
            "written": self.written,
            "labels": dict(self.labels),
            "original_labels": dict(self.originals),
            "unusable": {str(problem): count for problem, count in self.unusable.items()},
            "repeated": self.repeated,
            "judges": [
                {"model": model, "run": run or None, **asdict(counts)}
                for (model, run), counts in sorted(self.judges.items())
            ],
            "unusable_verdicts": {str(problem): count for problem, count in self.unusable_verdicts.items()},
            "examples": self.examples,
            "warnings": self.warnings,
        }


def import_set(set_format: SetFormat, paths: Sequence[Path], out: BinaryIO) -> ImportReport:
    """Write the labels of a set to ``out`` as JSON lines and return the report.

    Raises:
        LabelsUnreadable: a file cannot be read.
    """
    report = ImportReport(format=set_format, files=[path.name for path in paths])
    labels = _joined(paths, report) if set_format is SetFormat.WIKIPEDIA else _labels(set_format, paths, report)
    for contents in grouped_rows(labels):
        out.writelines(_without_contradictions(contents, report))
    return report


def _labels(set_format: SetFormat, paths: Iterable[Path], report: ImportReport) -> Iterator[Row]:
    for path in paths:
        for row in read_rows(path):
            report.rows += 1
            try:
                label = label_of(set_format, row)
            except UnusableRow as error:
                report.note(row, error, report.unusable)
            else:
                yield _line(label, row)


def _line(label: Label, row: SourceRow) -> Row:
    """Return a label line after a line about it, under a key that is equal for equal claims with equal sources."""
    key = row_key(label.claim, [page.text for page in label.pages], label.answer, label.result_id, label.leaf)
    judges = [verdict.judge for verdict in label.recorded]
    about = [row.file, row.number, label.human.value, label.original or label.human.value, judges]
    return key, json.dumps(about).encode() + b"\n" + label_line(label).encode()


def _without_contradictions(contents: Iterable[bytes], report: ImportReport) -> Iterator[bytes]:
    """Yield the label lines of one claim, or none if the set labels it differently in different rows."""
    rows = []
    for content in contents:
        about, _, line = content.partition(b"\n")
        rows.append((json.loads(about), line))
    # People whose labels are in a file of this tool may disagree. meta-eval counts their majority.
    decisions = {human for (_, _, human, _, _), _ in rows}
    if len(decisions) > 1 and report.format is not SetFormat.OWN:
        detail = f"labelled {' and '.join(sorted(decisions))} in {len(rows)} rows"
        for (file, number, *_), _ in rows:
            row = SourceRow(file=file, number=number, fields={})
            report.note(row, UnusableRow(Problem.CONTRADICTING, detail), report.unusable)
        return
    report.repeated += len(rows) - 1
    for (_, _, human, original, judges), line in rows:
        report.written += 1
        report.labels[human] += 1
        report.originals[original] += 1
        for model, run in judges:
            report.judge((model, run)).used += 1
        yield line


def _joined(paths: Iterable[Path], report: ImportReport) -> Iterator[Row]:
    """Yield the labels of a set whose recorded judges are in other rows, joined by the id of the row."""
    for contents in grouped_rows(_by_id(paths, report)):
        rows: list[tuple[SourceRow, Label | RecordedVerdict]] = []
        for content in contents:
            place, _, line = content.partition(b"\n")
            file, number = json.loads(place)
            [label] = parse_labels([line])
            rows.append((SourceRow(file=file, number=number, fields={}), label if label.row else label.judges[0]))
        yield from _join(rows, report)


def _by_id(paths: Iterable[Path], report: ImportReport) -> Iterator[Row]:
    for path in paths:
        for row in read_rows(path):
            is_recorded = not isinstance(row.fields, UnusableRow) and is_verdict(row.fields)
            counts = report.unusable_verdicts if is_recorded else report.unusable
            report.rows += not is_recorded
            try:
                if is_recorded and not isinstance(row.fields, UnusableRow):
                    id, verdict = parse_verdict(row.fields, run=row.run)
                    report.judge(verdict.judge).rows += 1
                    # A label line without a row, because it is only a container of the verdict.
                    label = Label(human=HumanDecision.UNCLEAR, claim=None, judges=(verdict,))
                else:
                    label = label_of(report.format, row)
                    id = label.row or ""
            except UnusableRow as error:
                report.note(row, error, counts)
            else:
                place = json.dumps([row.file, row.number]).encode()
                yield row_key(id), place + b"\n" + label_line(label).encode()


def _join(rows: Sequence[tuple[SourceRow, Label | RecordedVerdict]], report: ImportReport) -> Iterator[Row]:
    """Yield the labelled row of one id with its recorded verdicts."""
    labelled = [(place, known) for place, known in rows if isinstance(known, Label)]
    verdicts = [known for _, known in rows if isinstance(known, RecordedVerdict)]
    if len({label_line(label) for _, label in labelled}) > 1:
        for place, label in labelled:
            error = UnusableRow(Problem.DUPLICATE_ID, f"id: {label.row!r} is the id of {len(labelled)} different rows")
            report.note(place, error, report.unusable)
        labelled = []
    if not labelled:
        for verdict in verdicts:
            report.judge(verdict.judge).unknown_claim += 1
        return
    report.repeated += len(labelled) - 1
    kept, contradicting = one_per_judge(verdicts)
    for verdict in verdicts:
        report.judge(verdict.judge).repeated += 1
    for verdict in kept:
        report.judge(verdict.judge).repeated -= 1
    for judge in contradicting:
        report.judge(judge).contradicting += 1
        report.judge(judge).repeated -= sum(verdict.judge == judge for verdict in verdicts)
    place, label = labelled[0]
    yield _line(replace(label, judges=kept), place)
