"""Import of every label set, with rows of our own, and of damaged files and rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judges.analysis import label_import
from judges.analysis.label_import import ImportReport, import_set
from judges.analysis.labels import HumanDecision, Label, LabelsUnreadable, label_line, parse_labels
from judges.analysis.set_format import SetFormat
from rubrics.verdict import Outcome
from tests.fakes.label_sets import (
    PAGE,
    aggrefact_row,
    factcheck_row,
    verdict_row,
    wice_row,
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


def test_verdict_that_is_no_known_word_is_unreadable(tmp_path) -> None:
    dataset = write(tmp_path, "dataset.json", [wikipedia_row("a")])
    results = write(tmp_path, "results.json", [verdict_row("a", "Sort of")])
    _, [label] = imported(SetFormat.WIKIPEDIA, dataset, results)
    assert (label.judges[0].outcome, label.judges[0].reason) == (Outcome.NOT_JUDGED, "llm_output_unusable")


def test_repeated_verdict_is_used_once_and_a_contradicting_one_not_at_all(tmp_path) -> None:
    dataset = write(tmp_path, "dataset.json", [wikipedia_row("a"), wikipedia_row("b")])
    results = write(
        tmp_path,
        "results.json",
        [
            verdict_row("a", None, error="timeout"),
            verdict_row("a"),
            verdict_row("b"),
            verdict_row("b", "Not supported"),
        ],
    )
    report, (first, second) = imported(SetFormat.WIKIPEDIA, dataset, results)
    assert [one.outcome for one in first.judges] == [Outcome.PASSED]
    assert second.judges == ()
    counts = report.judge(("heron-1", "results"))
    assert (counts.rows, counts.used, counts.repeated, counts.contradicting) == (4, 1, 1, 1)


def test_different_rows_with_one_id_are_left_out(tmp_path) -> None:
    same = wikipedia_row("a")
    rows = [same, same, wikipedia_row("b"), wikipedia_row("b", "Not supported")]
    report, labels = imported(SetFormat.WIKIPEDIA, write(tmp_path, "dataset.json", rows))
    assert [label.row for label in labels] == ["a"]
    assert (report.unusable, report.repeated) == ({"duplicate_id": 2}, 1)


def test_source_without_a_valid_address_gets_a_placeholder(tmp_path) -> None:
    rows = [wikipedia_row("a", source_url="see the library"), wikipedia_row("b", source_url="http://[broken")]
    _, labels = imported(SetFormat.WIKIPEDIA, write(tmp_path, "dataset.json", rows))
    assert {label.sources for label in labels} == {("https://wikipedia.invalid/source",)}


def test_wice_labels(tmp_path) -> None:
    rows = [
        wice_row("dev1"),
        wice_row("dev2", "not_supported"),
        wice_row("dev3", "partially_supported"),
        wice_row("dev4", evidence="one text"),
    ]
    report, labels = imported(SetFormat.WICE, write(tmp_path, "dev.jsonl", rows))
    assert [(label.row, label.human) for label in labels] == [("dev1", PASSED), ("dev2", FAILED), ("dev3", PARTIAL)]
    assert labels[0].pages[0].text == ("The Heron 2 is a field gauge.\nIt costs 430 crowns.\nIt weighs 310 grams.")
    assert report.unusable == {"wrong_type": 1}


def test_factcheck_stances(tmp_path) -> None:
    stances = ("completely-support", "partially-support", "refute", "irrelevant")
    rows = [factcheck_row(n, stance) for n, stance in enumerate(stances)]
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "stance.jsonl", rows))
    assert [label.human for label in labels] == [PASSED, PARTIAL, FAILED, FAILED]
    assert report.originals == dict.fromkeys(stances, 1)


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
        ({"stance": "refute", "evidence": PAGE, "claim": None}, "wrong_type"),
        ({"stance": "maybe", "evidence": PAGE, "claim": "It rains"}, "unknown_label"),
        ({"stance": ["refute"], "evidence": PAGE, "claim": "It rains"}, "wrong_type"),
        ({"stance": "refute", "evidence": PAGE, "claim": " "}, "no_claim"),
        ({"stance": "refute", "claim": "It rains"}, "no_source_text"),
        ({"stance": "refute", "evidence": "\n", "claim": "It rains"}, "no_source_text"),
        ([1, 2], "not_an_object"),
        ("refute", "not_an_object"),
        (None, "not_an_object"),
    ],
)
def test_unusable_row_is_counted_with_its_reason(tmp_path, row, problem) -> None:
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows.jsonl", [factcheck_row(1), row]))
    assert len(labels) == 1
    assert report.unusable == {problem: 1}
    [example] = report.examples
    assert (example.file, example.row, example.problem) == ("rows.jsonl", 2, problem)
    assert report.rows == 2


@pytest.mark.parametrize(
    "line", [b"{", b"\xff\xfe\x00", b"[" * 100_000, b'{"claim": ' + b"9" * 5000 + b"}", b"NaN NaN", b"\x00"]
)
def test_line_that_is_not_json_is_counted(tmp_path, line) -> None:
    good = json.dumps(factcheck_row(1)).encode()
    path = write(tmp_path, "rows.jsonl", good + b"\n" + line + b"\n\n" + good.replace(b"Claim 1", b"Claim 2"))
    report, labels = imported(SetFormat.FACTCHECK_GPT, path)
    assert len(labels) == 2
    assert report.unusable == {"invalid_json": 1}


@pytest.mark.parametrize(
    "layout", [json.dumps, lambda rows: json.dumps({"rows": rows}), lambda rows: json.dumps(rows[0])]
)
def test_byte_order_mark_is_skipped(tmp_path, layout) -> None:
    content = b"\xef\xbb\xbf" + layout([factcheck_row(1)]).encode()
    _, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows", content))
    assert len(labels) == 1


def test_long_lines_with_a_column_of_their_own_are_not_one_document(tmp_path) -> None:
    rows = [factcheck_row(n, evidence="rain " * 2000) | {"metadata": {"rows": 1}} for n in range(3)]
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows.jsonl", rows))
    assert (len(labels), report.unusable) == (3, {})


def test_line_that_is_too_long_is_skipped_without_reading_it_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("judges.analysis.label_formats.MAX_LINE_BYTES", 500)
    rows = [factcheck_row(1), factcheck_row(2, evidence="x" * 5000), factcheck_row(3)]
    report, labels = imported(SetFormat.FACTCHECK_GPT, write(tmp_path, "rows.jsonl", rows))
    assert len(labels) == 2
    assert report.unusable == {"row_too_long": 1}


def test_lone_surrogates_are_replaced(tmp_path) -> None:
    path = write(tmp_path, "rows.jsonl", [factcheck_row(1, claim="A \ud800 claim", evidence="\udfff page")])
    _, [label] = imported(SetFormat.FACTCHECK_GPT, path)
    assert (label.claim, label.pages[0].text) == ("A ? claim", "? page")


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
    assert [example.row for example in report.examples] == [1, 2]
    assert any("contradict" in warning for warning in report.warnings)


def test_labels_of_one_class_are_reported(tmp_path) -> None:
    report, _ = imported(SetFormat.AGGREFACT, write(tmp_path, "facts.jsonl", [aggrefact_row(1), aggrefact_row(2)]))
    assert any("all labels are 'passed'" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"[]", "no rows"),
        (b'{"metadata": {}, "rows": 3}', "no rows"),
        (b'[{"id": "a"}', "invalid JSON after row 1"),
        (b'[{"id": "a"},\n {"id" "b"}]', "invalid JSON after row 1"),
        (b'{"metadata": {}, "rows": [{"id": ' + b"9" * 5000 + b"}]}", "integer overflow"),
        (b"PAR1 and nothing else", "invalid Parquet"),
    ],
)
def test_damaged_file_is_an_error_that_says_where(tmp_path, content, message) -> None:
    with pytest.raises(LabelsUnreadable, match=message):
        imported(SetFormat.WIKIPEDIA, write(tmp_path, "dataset.json", content))


def test_missing_file_is_an_error(tmp_path) -> None:
    with pytest.raises(LabelsUnreadable, match="cannot be read"):
        imported(SetFormat.WICE, tmp_path / "none.json")


def test_large_set_is_imported_in_parts_with_the_same_result(tmp_path, monkeypatch) -> None:
    rows = [wikipedia_row(str(n), ("Supported", "Not supported")[n % 2]) for n in range(300)]
    rows.append(wikipedia_row("300", "Not supported", claim_text=rows[0]["claim_text"]))
    verdicts = [verdict_row(str(n), model=model) for n in range(300) for model in ("heron-1", "heron-2")]
    paths = write(tmp_path, "dataset.json", rows), write(tmp_path, "results.json", verdicts)
    whole, in_order = imported(SetFormat.WIKIPEDIA, *paths)
    whole_batches = label_import.in_batches
    monkeypatch.setattr("judges.analysis.label_import.in_batches", lambda rows: whole_batches(rows, max_bytes=10_000))

    parts, unordered = imported(SetFormat.WIKIPEDIA, *paths)

    assert sorted(map(label_line, unordered)) == sorted(map(label_line, in_order))
    assert len(in_order) == 299
    assert all(len(label.judges) == 2 for label in in_order)
    assert parts.unusable == whole.unusable == {"contradicting_labels": 2}
    assert {judge: counts.used for judge, counts in parts.judges.items()} == {
        ("heron-1", "results"): 299,
        ("heron-2", "results"): 299,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
VALID = {
    SetFormat.WIKIPEDIA: (wikipedia_row("a"), verdict_row("a"), wikipedia_row("b", "Not supported")),
    SetFormat.WICE: (wice_row("a"), wice_row("b", "partially_supported")),
    SetFormat.FACTCHECK_GPT: (factcheck_row(1), factcheck_row(2, "refute")),
    SetFormat.AGGREFACT: (aggrefact_row(1), aggrefact_row(2, 0)),
    SetFormat.OWN: (json.loads(label_line(Label(human=PASSED, claim="It rains", task="Weather"))),),
}


@st.composite
def damaged_rows(draw: st.DrawFn) -> tuple[SetFormat, list[Any]]:
    """Return rows of a format in which fields are missing or have any value, among rows of any kind."""
    set_format = draw(st.sampled_from(list(SetFormat)))
    rows: list[Any] = []
    for _ in range(draw(st.integers(0, 6))):
        row = dict(draw(st.sampled_from(VALID[set_format])))
        for field in draw(st.sets(st.sampled_from(sorted(row)), max_size=2)):
            row |= {field: draw(JSON)}
            if draw(st.booleans()):
                del row[field]
        rows.append(draw(JSON) if draw(st.integers(0, 4)) == 0 else row)
    return set_format, rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=damaged_rows())
def test_every_row_is_written_or_counted_whatever_it_contains(tmp_path, case) -> None:
    set_format, rows = case
    # The first row is valid, so that there is a file to read.
    rows = [VALID[set_format][0], *rows]
    report, labels = imported(set_format, write(tmp_path, "rows.jsonl", rows))
    assert len(labels) == report.written
    kept = report.written + sum(report.unusable.values())
    # Equal rows with one id are one label. Other repeated rows are labels of their own.
    assert kept <= report.rows <= kept + report.repeated
    verdicts = sum(counts.rows for counts in report.judges.values()) + sum(report.unusable_verdicts.values())
    assert report.rows + (verdicts if set_format is SetFormat.WIKIPEDIA else 0) == len(rows)
    assert json.loads(json.dumps(report.as_json(), allow_nan=False)) == report.as_json()
