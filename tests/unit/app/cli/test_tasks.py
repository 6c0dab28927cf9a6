from __future__ import annotations

from pathlib import Path

import pytest

from judges.loader import load_judge
from tests.unit.app.conftest import RunCommand


def test_unknown_task_suggests_similar_tasks(assay: RunCommand) -> None:
    ended = assay("tasks", "show", "karow_visit")

    assert ended.code == 2
    assert "Did you mean: karrow_visit?" in ended.err


def test_new_task_loads_under_its_id(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "old_bridge", "--to", "mine")

    assert ended.code == 0
    judge = load_judge(tmp_path / "mine" / "old_bridge.py")
    assert (judge.task, judge.name) == ("old_bridge", "old_bridge")
    assert (tmp_path / "mine" / "tests" / "test_old_bridge.py").is_file()
    assert "pytest mine/tests/test_old_bridge.py" in ended.err


@pytest.mark.parametrize("task_id", ["2nd.task-b", "class", "A.B"])
def test_any_task_id_makes_a_loadable_file(assay: RunCommand, tmp_path: Path, task_id: str) -> None:
    assert assay("tasks", "new", task_id, "--to", "mine").code == 0
    assert load_judge(tmp_path / "mine" / f"{task_id}.py").task == task_id


def test_new_task_overwrites_nothing(assay: RunCommand, tmp_path: Path) -> None:
    assay("tasks", "new", "bridge", "--to", "mine")
    (tmp_path / "mine" / "bridge.py").write_text("my work")

    ended = assay("tasks", "new", "bridge", "--to", "mine")

    assert ended.code == 2
    assert (tmp_path / "mine" / "bridge.py").read_text() == "my work"


def test_invalid_task_id_writes_nothing(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "../bridge", "--to", "mine")

    assert ended.code == 2
    assert list(tmp_path.iterdir()) == []
