from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.app.conftest import RunCommand

ANSWER = "See [the page](https://bridges.example/old) and https://bridges.example/new."


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Create answers of ``otter`` to a shipped task and to a task without a judge."""
    for task in ("karrow_visit", "unheard_of"):
        (tmp_path / "answers" / "otter" / task).mkdir(parents=True)
        (tmp_path / "answers" / "otter" / task / "answer_1.md").write_text(ANSWER)
    return tmp_path / "answers"


def test_folder_without_answers_says_where_to_write_them(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()

    ended = assay("evaluate", "--agent", "otter")

    assert ended.code == 2
    assert "answers contains no answers. Write them to answers/otter/<task>/answer_<k>.md" in ended.err


def test_named_task_requires_a_judge(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--task", "unheard_of")

    assert ended.code == 2
    assert "no task file exists for 'unheard_of'" in ended.err
    assert "karrow_visit" in ended.err


def test_agent_name_cannot_lead_out_of_the_folder(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "../otter", "--answers", "answers/otter")

    assert ended.code == 2
    assert "must be 1 to 100 letters" in ended.err


def test_model_without_its_key_names_the_missing_variable(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--model", "openai/gpt-6-luna")

    assert ended.code == 1
    assert "OPENAI_API_KEY" in ended.err
    assert "Run with --model lexical" in ended.err


def test_dry_run_lists_the_plan_as_json_and_changes_nothing(assay: RunCommand, answers: Path, tmp_path: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--model", "lexical", "--dry-run", "--json")

    assert ended.code == 0
    plan = json.loads(ended.out)
    assert plan["model"] == "lexical"
    urls = ["https://bridges.example/old", "https://bridges.example/new"]
    known, unknown = plan["answers"]
    estimate = known.pop("estimate")
    assert (estimate["usd"], estimate["basis"]) == ({"low": 0, "high": 0}, "the lexical judge calls no model")
    assert plan["total"]["calls"] == estimate["calls"] == {"low": 0, "high": 0}
    assert unknown.pop("estimate") is None
    assert known == {
        "agent": "otter",
        "task_id": "karrow_visit",
        "answer": "answer_1.md",
        "judge": True,
        "reason": "no result yet",
        "urls": urls,
    }
    assert (unknown["judge"], unknown["reason"]) == (
        False,
        "no task file exists for unheard_of (--judges adds a folder)",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers"]
