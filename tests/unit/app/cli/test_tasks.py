from __future__ import annotations

import asyncio
import json
from pathlib import Path

import jsonschema_rs
import pytest

import judges.tasks
from judges.loader import load_judge
from judges.trial import try_judge
from judges.yaml_tasks.document import read_document
from rubrics.lint import lint
from tests.unit.app.conftest import RunCommand


def test_new_task_is_a_yaml_file_with_an_answer_that_it_scores_in_full(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "old_bridge", "--out", "mine")

    assert ended.code == 0
    tests = tmp_path / "mine" / "tests"
    answer, pages = (tests / "old_bridge.answer.md").read_text(), (tests / "old_bridge.pages.json").read_text()
    judgement = asyncio.run(try_judge(tmp_path / "mine" / "old_bridge.yaml", answer, json.loads(pages)))
    assert judgement.judge.task == "old_bridge"
    assert judgement.score.value == 1.0
    assert lint(judgement.rubric) == []
    assert "assay tasks test old_bridge --judges mine --answer mine/tests/old_bridge.answer.md --pages" in ended.err


def test_new_python_task_loads_under_its_id(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "old_bridge", "--out", "mine", "--python")

    assert ended.code == 0
    judge = load_judge(tmp_path / "mine" / "old_bridge.py")
    assert (judge.task, judge.name) == ("old_bridge", "old_bridge")
    assert (tmp_path / "mine" / "tests" / "test_old_bridge.py").is_file()
    assert "python mine/tests/test_old_bridge.py" in ended.err


def test_new_task_overwrites_nothing_and_is_no_second_file_of_a_task(assay: RunCommand, tmp_path: Path) -> None:
    existing = "bridge.py"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / existing).write_text("my work")

    ended = assay("tasks", "new", "bridge", "--out", "mine")

    assert ended.code == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [existing]
    assert (tmp_path / "mine" / existing).read_text() == "my work"


def test_invalid_task_id_writes_nothing(assay: RunCommand, tmp_path: Path) -> None:
    ended = assay("tasks", "new", "../bridge", "--out", "mine")

    assert ended.code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_yaml_task_is_listed_and_shown_with_its_lint(assay: RunCommand, tmp_path: Path) -> None:
    assay("tasks", "new", "old_bridge", "--out", "mine")
    file = tmp_path / "mine" / "old_bridge.yaml"
    file.write_text(file.read_text().replace("weight: 2", "weight: 2, critical: true"))

    listed, shown = assay("tasks", "show", "--judges", "mine"), assay("tasks", "show", "old_bridge", "--judges", "mine")

    assert listed.code == shown.code == 0
    assert "old_bridge" in listed.out
    assert "facts/year: weight 2 has no effect on a critical node" in shown.out
    assert "mine/old_bridge.yaml" in shown.out


@pytest.mark.slow
def test_all_problems_of_a_yaml_task_are_listed(assay: RunCommand, tmp_path: Path) -> None:
    assay("tasks", "new", "old_bridge", "--out", "mine")
    file = tmp_path / "mine" / "old_bridge.yaml"
    file.write_text(file.read_text().replace("{builder} built", "{bilder} built").replace("in {year}", "in {yaer}"))

    for command in (("tasks", "show"), ("tasks", "test", "old_bridge")):
        ended = assay(*command, "--judges", "mine")
        assert ended.code == 1
        assert "old_bridge.yaml:17:28: no field 'bilder'" in ended.err
        assert "old_bridge.yaml:18:" in ended.err
        assert ended.err.count("no field 'bilder'") == 1


def test_schema_of_task_files_accepts_the_shipped_tasks(assay: RunCommand) -> None:
    ended = assay("tasks", "show", "--schema")
    schema = json.loads(ended.out)

    assert schema["$id"] == "urn:assay:task-file:1"
    validator = jsonschema_rs.validator_for(schema)
    for path in (Path(judges.tasks.__path__[0]) / "as_yaml").glob("*.yaml"):
        document = read_document(path.read_bytes(), path.name).value
        assert list(validator.iter_errors(document)) == []
        assert not validator.is_valid({**document, "unknown": 1})
        assert not validator.is_valid({**document, "format": 2})
