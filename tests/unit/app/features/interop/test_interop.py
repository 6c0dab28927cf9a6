"""Results exported to other formats and read back like other programs do."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.features.interop.exported_results import ExportedResult, NotExportable, from_folder, write_layout
from app.features.interop.tables import leaf_table, result_table, write_csv, write_parquet
from rubrics.verdict import Outcome
from tests.fakes.judged import group, leaf, result_of, rubric_of

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
FORMULA = '=HYPERLINK("https://evil.example";"x")'


def judged(
    task: str = "bridge", answer: str = "answer_1.md", *, run: str | None = None, **changes: Any
) -> ExportedResult:
    rubric = rubric_of(
        group("facts", leaf("old", Outcome.PASSED, claim=FORMULA, sources=("https://a.example", "https://b.example"))),
        leaf("new", Outcome.FAILED, claim="It is new", sources=()),
        leaf("seen", Outcome.NOT_JUDGED, claim="It was seen", sources=()),
        task_id=task,
    )
    result = result_of(rubric, **{"agent_name": "otter", "answer_name": answer, **changes})
    return ExportedResult(result=result, answer="It is old.", created_at=AT, run=run)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_one_row_per_result(tmp_path: Path) -> None:
    write_csv(tmp_path / "results.csv", result_table([judged(), judged(answer="answer_2.md")]))

    first, second = rows_of(tmp_path / "results.csv")
    assert (first["agent"], first["task_id"], first["answer_name"]) == ("otter", "bridge", "answer_1.md")
    assert (first["status"], first["score_value"]) == ("incomplete", "")
    assert (float(first["score_low"]), float(first["score_high"])) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert [first[f"leaves_{name}"] for name in ("passed", "failed", "not_judged")] == ["1", "1", "1"]
    assert (first["words"], first["created_at"], first["success"]) == ("3", "2026-03-01T09:30:00+00:00", "false")
    assert second["answer_name"] == "answer_2.md"


def test_penalty_that_applies_counts_as_failed_and_an_avoided_one_as_passed() -> None:
    rubric = rubric_of(leaf("a"), leaf("met", weight=-1.0), leaf("unmet", Outcome.FAILED, weight=-2.0))
    result = ExportedResult(result=result_of(rubric), answer=None, created_at=AT, run=None)
    [row] = result_table([result]).objects()
    assert (row["leaves"], row["leaves_passed"], row["leaves_failed"]) == (3, 2, 1)
    assert [row["outcome"] for row in leaf_table([result]).objects()] == ["passed", "applies", "avoided"]


def test_parquet_keeps_types_lists_and_missing_values(tmp_path: Path) -> None:
    write_parquet(tmp_path / "results.parquet", result_table([judged(usage={"usd": None})]))
    write_parquet(tmp_path / "leaves.parquet", leaf_table([judged()]))

    (row,) = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert (row["score_value"], row["usd"], row["leaves"]) == (None, None, 3)
    assert row["final_score"] == pytest.approx(1 / 3)
    assert (row["prompts"], row["success"]) == (["verify_page@1"], False)
    first, second, _ = pq.read_table(tmp_path / "leaves.parquet").to_pylist()
    assert (first["claim"], first["sources"]) == (FORMULA, ["https://a.example", "https://b.example"])
    assert second["sources"] == []


def test_exported_public_layout_is_read_back(tmp_path: Path) -> None:
    results = [judged(), judged(answer="answer_2.md"), judged("tower")]
    assert write_layout(tmp_path, results) == 3

    back = from_folder(tmp_path, "otter")
    assert [(one.task_id, one.answer_name, one.answer, one.created_at) for one in back] == [
        ("bridge", "answer_1.md", "It is old.", AT),
        ("bridge", "answer_2.md", "It is old.", AT),
        ("tower", "answer_1.md", "It is old.", AT),
    ]
    assert [one.result["id"] for one in back] == [result.result["id"] for result in results]
    assert from_folder(tmp_path, "otter", ["tower"]) == back[2:]
    summary = json.loads((tmp_path / "otter" / "summary.json").read_text())
    assert (summary["num_tasks"], summary["num_runs"]) == (2, 2)
    entries = json.loads((tmp_path / "otter" / "bridge" / "summary.json").read_text())
    assert [entry["answer_name"] for entry in entries] == ["answer_1.md", "answer_2.md"]


@pytest.mark.parametrize("changes", [{"agent_name": "../x"}, {"task_id": "a/b"}, {"answer_name": "../../etc.md"}])
def test_name_in_a_foreign_result_never_becomes_a_path(tmp_path: Path, changes: dict[str, str]) -> None:
    with pytest.raises(NotExportable, match="cannot be a folder name"):
        write_layout(tmp_path / "out", [judged("fine"), judged(**changes)])
    assert list(tmp_path.iterdir()) == []
