"""Import of every label set, with rows of our own, and of damaged files and rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from judges.analysis.label_formats import SetFormat
from judges.analysis.label_import import ImportReport, import_set
from judges.analysis.labels import HumanDecision, Label, LabelsUnreadable, label_line, parse_labels
from rubrics.verdict import Outcome
from tests.fakes.label_sets import (
    PAGE,
    aggrefact_row,
    factcheck_row,
    verdict_row,
    wikipedia_row,
)

PASSED, PARTIAL, FAILED = HumanDecision.PASSED, HumanDecision.PARTIAL, HumanDecision.FAILED


def write(folder: Path, name: str, content: Any) -> Path:
    """Write rows as JSON lines, and anything else as a JSON document or as it is."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        path.write_text(json.dumps(content, indent=2))
    return path


def imported(set_format: SetFormat, *paths: Path) -> tuple[ImportReport, tuple[Label, ...]]:
    out = io.BytesIO()
    report = import_set(set_format, paths, out)
    lines = out.getvalue().splitlines()
    return report, parse_labels(lines) if lines else ()


def test_wikipedia_labels_keep_every_recorded_judge(tmp_path) -> None:
    dataset = write(
        tmp_path,
        "dataset.json",
        {
            "metadata": {"extracted_at": "2026-05-15"},
            "rows": [
                wikipedia_row("a"),
                wikipedia_row("b", "Partially supported"),
                wikipedia_row("c", "Not supported"),
                wikipedia_row("d", "Source unavailable"),
            ],
        },
    )
    newer = write(
        tmp_path,
        "results.json",
        {
            "metadata": {"prompt_date": "2026-08-17"},
            "rows": [
                verdict_row("a"),
                verdict_row("b", "Partially supported"),
                verdict_row("c", "Source unavailable"),
                verdict_row("a", "Not supported", "heron-2"),
                verdict_row("d"),
            ],
        },
    )
    older = write(tmp_path, "results_v1.json", [verdict_row("a", "NOT SUPPORTED"), verdict_row("b", None, error="429")])

    report, labels = imported(SetFormat.WIKIPEDIA, dataset, newer, older)

    by_row = {label.row: label for label in labels}
    assert {row: label.human for row, label in by_row.items()} == {"a": PASSED, "b": PARTIAL, "c": FAILED}
    assert by_row["a"].pages[0].text == PAGE
    assert by_row["a"].sources == ("https://pellard.example/a",)
    assert [(one.model, one.run, one.outcome) for one in by_row["a"].judges] == [
        ("heron-1", "2026-08-17", Outcome.PASSED),
        ("heron-2", "2026-08-17", Outcome.FAILED),
        ("heron-1", "results_v1", Outcome.FAILED),
    ]
    partial, failed_call = by_row["b"].judges
    assert (partial.outcome, partial.partial) == (Outcome.FAILED, True)
    assert (failed_call.outcome, failed_call.reason) == (Outcome.NOT_JUDGED, "call_failed")
    [unavailable] = by_row["c"].judges
    assert (unavailable.outcome, unavailable.reason) == (Outcome.NOT_JUDGED, "source_unavailable")
    assert (unavailable.input_tokens, unavailable.usd, unavailable.seconds) == (1000, 0.002, 2.5)
    assert report.unusable == {"source_unavailable": 1}
    assert report.judge(("heron-1", "2026-08-17")).unknown_claim == 1


@pytest.mark.parametrize("name", ["facts.jsonl", "facts.parquet"])
def test_aggrefact_as_json_lines_and_parquet(tmp_path, name) -> None:
    rows = [aggrefact_row(1), aggrefact_row(2, 0), aggrefact_row(3, 2)]
    path = tmp_path / name
    if name.endswith("parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        write(tmp_path, name, rows)
    report, labels = imported(SetFormat.AGGREFACT, path)
    assert [(label.human, label.task_id) for label in labels] == [(PASSED, "gauges"), (FAILED, "gauges")]
    assert report.unusable == {"unknown_label": 1}


def test_own_labels_are_checked_and_people_may_disagree(tmp_path) -> None:
    ada = Label(human=PASSED, claim="It costs 430 crowns", reviewer="Ada")
    bob = Label(human=FAILED, claim="It costs 430 crowns", reviewer="Bob")
    lines = [
        label_line(ada).encode(),
        label_line(bob).encode(),
        b'{"human": "maybe", "claim": "x"}\n',
        b'{"human": 1}\n',
    ]
    report, labels = imported(SetFormat.OWN, write(tmp_path, "own.jsonl", b"".join(lines)))
    assert labels == (ada, bob)
    assert report.unusable == {"unknown_label": 2}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"stance": "refute", "evidence": PAGE}, "missing_field"),
        ({"stance": "refute", "evidence": PAGE, "claim": 7}, "wrong_type"),
        ({"stance": "maybe", "evidence": PAGE, "claim": "It rains"}, "unknown_label"),
        ({"stance": "refute", "evidence": PAGE, "claim": " "}, "no_claim"),
        ({"stance": "refute", "claim": "It rains"}, "no_source_text"),
        ([1, 2], "not_an_object"),
    ],
)
def test_unusable_row_is_counted_with_its_reason(tmp_path, row, problem) -> None:
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows.jsonl", [factcheck_row(1), row]))
    assert len(labels) == 1
    assert report.unusable == {problem: 1}
    [example] = report.examples
    assert (example["file"], example["row"], example["problem"]) == ("rows.jsonl", 2, problem)
    assert report.rows == 2


def test_contradicting_rows_are_left_out_and_repeated_ones_counted(tmp_path) -> None:
    rows = [
        factcheck_row(1),
        factcheck_row(1, "refute"),
        factcheck_row(2),
        factcheck_row(2),
        factcheck_row(2, evidence="Another page."),
    ]
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows.jsonl", rows))
    assert len(labels) == 3
    assert report.unusable == {"contradicting_labels": 2}
    assert report.repeated == 1
    assert [example["row"] for example in report.examples] == [1, 2]
    assert any("contradict" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b'{"metadata": {}, "rows": 3}', "no rows"),
        (b'[{"id": "a"}', "invalid JSON after row 1"),
        (b"PAR1 and nothing else", "invalid Parquet"),
    ],
)
def test_damaged_file_is_an_error_that_says_where(tmp_path, content, message) -> None:
    with pytest.raises(LabelsUnreadable, match=message):
        imported(SetFormat.WIKIPEDIA, write(tmp_path, "dataset.json", content))
