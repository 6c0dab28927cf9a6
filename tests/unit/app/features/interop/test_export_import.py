from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.features.interop.exported_results import ExportedResult
from app.features.interop.public_layout import write_layout
from rubrics.verdict import Outcome
from tests.fakes.judged import leaf, result_of, rubric_of
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def results_folder(tmp_path: Path) -> Path:
    """Create a result folder with two tasks of ``otter``."""
    rubric = rubric_of(leaf("a", Outcome.PASSED, claim="=1+1", sources=()), leaf("b", Outcome.FAILED, claim="No"))
    results = [
        ExportedResult(
            result=result_of(rubric, agent_name="otter", task_id=task, answer_name=f"answer_{k}.md"),
            answer=f"Answer {k}.",
            created_at=AT,
        )
        for task in ("bridge", "tower")
        for k in (1, 2)
    ]
    write_layout(tmp_path / "eval_results", results)
    return tmp_path / "eval_results"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--agent", "otter", "--results", "eval_results", "--task", "moat"), "no matching result"),
        (("--agent", "../otter", "--results", "eval_results"), "must be 1 to 100 letters"),
    ],
)
def test_export_reports_why_it_is_impossible(
    assay: RunCommand, results_folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    ended = assay("results", "export", "--out", "x.csv", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert not Path("x.csv").exists()


def json_lines(*answers: dict[str, object]) -> str:
    return "".join(
        json.dumps({"agent": "otter", "task_id": "bridge", "text": "Old.", **answer}) + "\n" for answer in answers
    )


def test_json_lines_become_a_folder_for_evaluate(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({}, {"text": "New."}, {"task_id": "tower", "name": "mine"}))

    ended = assay("results", "import", "a.jsonl", "--out", "in")
    assert (ended.code, ended.out) == (0, "3 written, 0 unchanged: in\n")
    assert ended.err.startswith("warning: in/otter/tower/mine.md will not be judged")
    assert (tmp_path / "in/otter/bridge/answer_2.md").read_text() == "New."
    assert (tmp_path / "in/otter/tower/mine.md").is_file()
    assert assay("results", "import", "a.jsonl", "--out", "in").out == "0 written, 3 unchanged: in\n"


def test_existing_answer_that_differs_is_replaced_only_with_overwrite(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({}))
    assay("results", "import", "a.jsonl")
    Path("a.jsonl").write_text(json_lines({"text": "Other."}, {"task_id": "tower"}))

    refused = assay("results", "import", "a.jsonl")
    assert refused.code == 2
    assert "answers/otter/bridge/answer_1.md" in refused.err
    assert not Path("answers/otter/tower").exists()  # all or nothing
    assert assay("results", "import", "a.jsonl", "--overwrite").code == 0
    assert Path("answers/otter/bridge/answer_1.md").read_text() == "Other."


def test_names_that_are_paths_are_rejected_by_line(assay: RunCommand, tmp_path: Path) -> None:
    Path("a.jsonl").write_text(json_lines({"agent": "../../x"}, {}, {"task_id": "/etc"}, {"name": "..", "text": "x"}))

    ended = assay("results", "import", "a.jsonl")

    assert ended.code == 2
    assert "line 1.agent" in ended.err and "line 3.task_id" in ended.err and "line 4.name" in ended.err
    assert not Path("answers").exists()
