from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.loader import load_judge
from tests.unit.app.conftest import Call


def test_shipped_tasks_are_listed(assay: Call) -> None:
    ended = assay("tasks", "--json")

    assert ended.code == 0
    listed = json.loads(ended.out)
    assert [task["id"] for task in listed["tasks"]] == ["karrow_visit", "pellard_gauges", "velm_directors"]
    assert listed["broken"] == {}
    assert all(len(task["sha256"]) == 64 for task in listed["tasks"])


def test_a_judge_file_that_does_not_load_is_named_and_fails_the_command(assay: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bridge.py").write_text("def (")

    ended = assay("tasks", "--judges", "mine")

    assert ended.code == 1
    assert "bridge.py" in ended.err
    assert "karrow_visit" in ended.out


def test_an_unknown_task_names_near_ones(assay: Call) -> None:
    ended = assay("tasks", "show", "karow_visit")

    assert ended.code == 2
    assert "Did you mean: karrow_visit?" in ended.err


def test_a_task_is_shown_with_its_judge(assay: Call) -> None:
    ended = assay("tasks", "show", "karrow_visit")

    assert ended.code == 0
    assert "karrow_visit.py" in ended.out
    assert "tide museum at Karrow Bay" in ended.out


def test_a_new_task_loads_under_its_id(assay: Call, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "old_bridge", "--to", "mine")

    assert ended.code == 0
    judge = load_judge(tmp_path / "mine" / "old_bridge.py")
    assert (judge.task, judge.name) == ("old_bridge", "old_bridge")
    assert (tmp_path / "mine" / "tests" / "test_old_bridge.py").is_file()
    assert "pytest mine/tests/test_old_bridge.py" in ended.err


@pytest.mark.parametrize("task_id", ["2nd.task-b", "class", "A.B"])
def test_any_task_id_makes_a_file_that_loads(assay: Call, tmp_path: Path, task_id: str) -> None:
    assert assay("tasks", "new", task_id, "--to", "mine").code == 0
    assert load_judge(tmp_path / "mine" / f"{task_id}.py").task == task_id


def test_nothing_is_overwritten_by_a_new_task(assay: Call, tmp_path: Path) -> None:
    assay("tasks", "new", "bridge", "--to", "mine")
    (tmp_path / "mine" / "bridge.py").write_text("my work")

    ended = assay("tasks", "new", "bridge", "--to", "mine")

    assert ended.code == 2
    assert (tmp_path / "mine" / "bridge.py").read_text() == "my work"


def test_a_name_that_is_no_task_id_writes_nothing(assay: Call, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "../bridge", "--to", "mine")

    assert ended.code == 2
    assert list(tmp_path.iterdir()) == []
