"""Figures of published recorded judges: from rows of our own with the same counts, and from the public files.

The public label sets are not part of this project. To check with them, clone the repositories into one folder and run
``ASSAY_LABEL_SETS=FOLDER python -m pytest tests/integration/app/features/meta_eval/test_published_figures.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.label_sets import factcheck_row, verdict_row, wice_row, wikipedia_row
from tests.unit.app.conftest import RunCommand

SETS = Path(os.environ.get("ASSAY_LABEL_SETS", ""))
needs_files = pytest.mark.skipif("ASSAY_LABEL_SETS" not in os.environ, reason="ASSAY_LABEL_SETS is not set")

WORDS = ("Supported", "Partially supported", "Not supported", "Source unavailable")
COUNTS = {
    "Supported": (53, 12, 11, 4),
    "Partially supported": (7, 19, 26, 4),
    "Not supported": (0, 3, 27, 16),
}
"""Verdicts of claude-sonnet-5 (columns as ``WORDS``) by label, as published with the recorded judge."""
SONNET = {"n": 158, "raw": 0.810, "kappa": 0.617, "ac1": 0.627, "tpr": 0.697, "tnr": 0.915}
GEMINI = {"n": 177, "raw": 0.746, "kappa": 0.473, "ac1": 0.512}
LEXICAL = {"n": 182, "raw": 0.637, "kappa": 0.197, "ac1": 0.402, "tpr": 0.200, "tnr": 0.980}


def figures(row: Mapping[str, Any], names: Mapping[str, float]) -> dict[str, float]:
    return {name: row["n"] if name == "n" else round(row[name]["value"], 3) for name in names}


def bench(assay: RunCommand, *arguments: str) -> list[dict[str, Any]]:
    ended = assay("meta-eval", "bench", *arguments, "--json")
    assert ended.code in (0, 3), ended.err
    rows: list[dict[str, Any]] = json.loads(ended.out)["rows"]
    return rows


def verdicts_of_sonnet() -> list[tuple[str, str]]:
    """Return label and verdict of each row."""
    return [
        (label, word)
        for label, counts in COUNTS.items()
        for word, count in zip(WORDS, counts, strict=True)
        for _ in range(count)
    ]


def test_published_counts_give_the_published_figures(assay: RunCommand, tmp_path: Path) -> None:
    pairs = verdicts_of_sonnet()
    rows = [wikipedia_row(f"row_{n}", label) for n, (label, _) in enumerate(pairs)]
    verdicts = [verdict_row(f"row_{n}", word, "claude-sonnet-5") for n, (_, word) in enumerate(pairs)]
    (tmp_path / "dataset.json").write_text(json.dumps({"metadata": {}, "rows": rows}))
    (tmp_path / "results.json").write_text(json.dumps({"metadata": {"prompt_date": "2026-08-17"}, "rows": verdicts}))
    imported = assay("meta-eval", "import", "wikipedia", "dataset.json", "results.json", "--out", "set.jsonl")
    assert imported.code == 0, imported.err

    [row] = bench(assay, "--labels", "set.jsonl")

    assert figures(row, SONNET) == SONNET
    assert row["not_judged"]["by_reason"] == {"source_unavailable": 24}


GEMINI_COUNTS = {True: (48, 29), False: (16, 84)}
"""Verdicts that give the figures of gemini-2.5-flash, by whether the label is Supported: supported, and not."""
STATED = "The Heron 2 costs 430 crowns."
WRITTEN = (
    ("wice", "wice/data/entailment_retrieval/claim/test.jsonl"),
    ("factcheck-gpt", "Factcheck-GPT/subtasks/subtask3_claim_evidence_stance.jsonl"),
)
PATTERNS = (
    ("wice", "entailment_retrieval/*/*.jsonl"),
    ("factcheck-gpt", "subtasks/subtask3_claim_evidence_stance.jsonl"),
)


def write_sets(folder: Path) -> None:
    """Write rows of our own in the folders and formats of the public sets, with the published counts.

    The lexical judge finds the claim in the pages of 16 supported and 2 other rows.
    """
    labels = verdicts_of_sonnet()
    gemini = {holds: ["Supported"] * yes + ["Not supported"] * no for holds, (yes, no) in GEMINI_COUNTS.items()}
    rows, sonnet, flash = [], [], []
    seen = {True: 0, False: 0}
    for n, (label, word) in enumerate(labels):
        holds = label == "Supported"
        is_stated = seen[holds] < (16 if holds else 2)
        seen[holds] += 1
        page = STATED if is_stated else "Otters swim in cold rivers."
        rows.append(
            wikipedia_row(
                f"row_{n}", label, claim_text="The Heron 2 costs 430 crowns.", source_text=f"{page} Page {n}."
            )
        )
        sonnet.append(verdict_row(f"row_{n}", word, "claude-sonnet-5"))
        if gemini[holds]:
            flash.append(verdict_row(f"row_{n}", gemini[holds].pop(), "gemini-2.5-flash"))
    benchmark = folder / "citation-checker-script" / "benchmark"
    benchmark.mkdir(parents=True)
    (benchmark / "dataset.json").write_text(json.dumps({"metadata": {}, "rows": rows}))
    (benchmark / "results.json").write_text(json.dumps({"metadata": {"prompt_date": "2026-08-17"}, "rows": sonnet}))
    (benchmark / "results_flash.json").write_text(json.dumps(flash))
    words = ("supported", "partially_supported", "not_supported")
    stances = ("completely-support", "partially-support", "refute", "irrelevant")
    contents = (
        [wice_row(str(n), words[n % 3]) for n in range(12)],
        [factcheck_row(n, stances[n % 4]) for n in range(12)],
    )
    for (_, name), lines in zip(WRITTEN, contents, strict=True):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def check_figures(assay: RunCommand, sets: Path) -> None:
    [dataset] = sets.rglob("benchmark/dataset.json")
    results = sorted(dataset.parent.glob("results*.json"))
    imported = assay(
        "meta-eval", "import", "wikipedia", str(dataset), *map(str, results), "--out", "wikipedia.jsonl", "--json"
    )
    assert imported.code == 0, imported.err
    rows = bench(assay, "--labels", "wikipedia.jsonl", "--model", "lexical")
    for name, published in (("claude-sonnet-5", SONNET), ("gemini-2.5-flash", GEMINI), ("lexical/lexical", LEXICAL)):
        measured = [figures(row, published) for row in rows if row["model"] == name]
        assert published in measured, (name, measured)


def check_import(assay: RunCommand, sets: Path, set_format: str, pattern: str) -> None:
    files = sorted(sets.rglob(pattern))
    assert files, f"no file {pattern} below {sets}"
    for file in files:
        ended = assay("meta-eval", "import", set_format, str(file), "--out", "set.jsonl", "--json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        assert report["written"] > 0.9 * report["rows"], report["unusable"]


def test_checks_of_the_public_files_work_on_own_files_in_their_formats(assay: RunCommand, tmp_path: Path) -> None:
    write_sets(tmp_path / "sets")
    check_figures(assay, tmp_path / "sets")
    for set_format, pattern in PATTERNS:
        check_import(assay, tmp_path / "sets", set_format, pattern)


@needs_files
def test_recorded_and_lexical_judges_of_the_citation_check(assay: RunCommand) -> None:
    check_figures(assay, SETS)


@needs_files
@pytest.mark.parametrize(("set_format", "pattern"), PATTERNS)
def test_public_files_are_imported(assay: RunCommand, set_format: str, pattern: str) -> None:
    check_import(assay, SETS, set_format, pattern)
