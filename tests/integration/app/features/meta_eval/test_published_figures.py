"""Figures of published recorded judges: from rows of our own with the same counts, and from the public files.

The public label sets are not part of this project. To check with them, clone the repositories into one folder and run
``ASSAY_LABEL_SETS=FOLDER python -m pytest tests/integration/app/features/meta_eval/test_published_figures.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.label_sets import verdict_row, wikipedia_row
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


def test_published_counts_give_the_published_figures(assay: RunCommand, tmp_path: Path) -> None:
    pairs = [
        (label, word)
        for label, counts in COUNTS.items()
        for word, count in zip(WORDS, counts, strict=True)
        for _ in range(count)
    ]
    rows = [wikipedia_row(f"row_{n}", label) for n, (label, _) in enumerate(pairs)]
    verdicts = [verdict_row(f"row_{n}", word, "claude-sonnet-5") for n, (_, word) in enumerate(pairs)]
    (tmp_path / "dataset.json").write_text(json.dumps({"metadata": {}, "rows": rows}))
    (tmp_path / "results.json").write_text(json.dumps({"metadata": {"prompt_date": "2026-08-17"}, "rows": verdicts}))
    imported = assay("meta-eval", "import", "wikipedia", "dataset.json", "results.json", "--out", "set.jsonl")
    assert imported.code == 0, imported.err

    [row] = bench(assay, "--labels", "set.jsonl")

    assert figures(row, SONNET) == SONNET
    assert row["not_judged"]["by_reason"] == {"source_unavailable": 24}


def found(name: str) -> Iterator[Path]:
    return SETS.rglob(name)


@needs_files
def test_recorded_and_lexical_judges_of_the_citation_check(assay: RunCommand) -> None:
    [dataset] = found("benchmark/dataset.json")
    results = sorted(dataset.parent.glob("results*.json"))
    imported = assay(
        "meta-eval", "import", "wikipedia", str(dataset), *map(str, results), "--out", "wikipedia.jsonl", "--json"
    )
    assert imported.code == 0, imported.err
    rows = bench(assay, "--labels", "wikipedia.jsonl", "--model", "lexical")
    for name, published in (("claude-sonnet-5", SONNET), ("gemini-2.5-flash", GEMINI), ("lexical/lexical", LEXICAL)):
        measured = [figures(row, published) for row in rows if row["model"] == name]
        assert published in measured, (name, measured)


@needs_files
@pytest.mark.parametrize(
    ("set_format", "pattern"),
    [
        ("wice", "entailment_retrieval/*/*.jsonl"),
        ("wice", "non_supported_tokens/*.jsonl"),
        ("factcheck-gpt", "subtasks/subtask3_claim_evidence_stance.jsonl"),
    ],
)
def test_public_files_are_imported(assay: RunCommand, set_format: str, pattern: str) -> None:
    files = sorted(found(pattern))
    assert files, f"no file {pattern} below ASSAY_LABEL_SETS"
    for file in files:
        ended = assay("meta-eval", "import", set_format, str(file), "--out", "set.jsonl", "--json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        assert report["written"] > 0.9 * report["rows"], report["unusable"]
