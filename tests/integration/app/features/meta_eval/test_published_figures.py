"""Figures of a published recorded judge, from rows of our own with the same counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.label_sets import verdict_row, wikipedia_row
from tests.unit.app.conftest import RunCommand

WORDS = ("Supported", "Partially supported", "Not supported", "Source unavailable")
COUNTS = {
    "Supported": (53, 12, 11, 4),
    "Partially supported": (7, 19, 26, 4),
    "Not supported": (0, 3, 27, 16),
}
"""Verdicts of claude-sonnet-5 (columns as ``WORDS``) by label, as published with the recorded judge."""
SONNET = {"n": 158, "raw": 0.810, "kappa": 0.617, "ac1": 0.627, "tpr": 0.697, "tnr": 0.915}


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
