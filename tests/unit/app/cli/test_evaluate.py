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


def test_missing_answers_folder_is_reported_with_its_path(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--answers", "nowhere")

    assert (ended.code, ended.out) == (2, "")
    assert str(tmp_path / "nowhere") in ended.err
    assert "--answers" in ended.err


def test_folder_without_its_option_names_the_option(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "answers", "--agent", "otter")

    assert (ended.code, ended.out) == (2, "")
    assert "unexpected argument answers" in ended.err
    assert "with --answers" in ended.err
    assert assay("evaluate", "--help").out.splitlines()[0].rstrip() == "Usage: assay evaluate [OPTIONS]"


def test_folder_without_answers_says_where_to_write_them(assay: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()

    ended = assay("evaluate", "--agent", "otter")

    assert ended.code == 2
    assert "answers contains no answers. Write them to answers/otter/<task>/answer_<k>.md" in ended.err


def test_unknown_agent_suggests_existing_agents(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "oter")

    assert ended.code == 2
    assert "Did you mean: otter?" in ended.err


def test_unknown_agent_suggests_only_folders_with_answers(assay: RunCommand, answers: Path) -> None:
    (answers / "code").mkdir()
    Path("agens").mkdir()

    ended = assay("evaluate", "--agent", "agent")

    assert ended.code == 2
    assert "Available: otter\nSet another folder with --answers." in ended.err
    assert "code" not in ended.err


def test_misspelled_task_suggests_similar_tasks(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--task", "karow_visit")

    assert ended.code == 2
    assert "\nDid you mean: karrow_visit?" in ended.err


def test_named_task_requires_a_judge(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--task", "unheard_of")

    assert ended.code == 2
    assert "no task file exists for 'unheard_of'" in ended.err
    assert "karrow_visit" in ended.err


def test_task_without_answers_suggests_tasks_with_answers(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--task", "velm_directors")

    assert ended.code == 2
    assert "karrow_visit" in ended.err


def test_missing_judges_folder_is_reported(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--judges", "no_judges")

    assert ended.code == 2
    assert "no_judges" in ended.err


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


def test_dry_run_estimates_from_earlier_results_without_a_key(assay: RunCommand, answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "eval_results" / "heron" / "karrow_visit" / "answer_1"
    (folder / "results").mkdir(parents=True)
    usage = {"calls": 12, "cached_calls": 0, "input_tokens": 12_000, "output_tokens": 600}
    result = {"status": "complete", "model": "gpt-6-luna", "usage": usage}
    (folder / "results" / "20260101_000000_answer_1.md.json").write_text(json.dumps(result))

    ended = assay("evaluate", "--agent", "otter", "--model", "openai/gpt-6-luna", "--dry-run", "--json")

    estimate = json.loads(ended.out)["answers"][0]["estimate"]
    assert (estimate["calls"], estimate["basis"]) == ({"low": 8, "high": 18}, "1 earlier result of the task")
    assert 0 < estimate["usd"]["low"] < estimate["usd"]["high"]


def test_dry_run_prints_a_table(assay: RunCommand, answers: Path) -> None:
    ended = assay("evaluate", "--agent", "otter", "--model", "lexical", "--dry-run")

    assert "karrow_visit" in ended.out
    assert "dry run: nothing was judged" in ended.err
    assert max(map(len, ended.out.splitlines())) <= 80


def test_summary_is_read_from_result_files(assay: RunCommand, tmp_path: Path) -> None:
    folder = tmp_path / "eval_results" / "otter" / "bridge" / "answer_1"
    (folder / "results").mkdir(parents=True)
    (folder / "answer_1.md").write_text("three words here")
    (folder / "results" / "20260101_000000_answer_1.md.json").write_text('{"final_score": 0.5}')

    ended = assay("results", "summary", "--agent", "otter", "--results", "eval_results", "--json")

    assert ended.code == 0
    summary = json.loads(ended.out)
    assert (summary["avg_score"], summary["avg_answer_word_count"], summary["pass_at_1"]) == (0.5, 3.0, 0.0)
