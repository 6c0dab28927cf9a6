"""The shipped tasks as YAML: for every example answer, the same values, tree and verdicts as the Python form."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import judges.tasks
from app.demo.expected import EXPECTED, examples_dir
from judges.trial import try_judge
from rubrics.lint import lint
from rubrics.rubric import Rubric
from rubrics.tree_json import tree_json

FOLDER = Path(judges.tasks.__path__[0])
PAGES = json.loads((files("app.demo") / "page_texts.json").read_text("utf-8"))
TASKS = sorted(EXPECTED["demo"])


def _tree(rubric: Rubric) -> dict[str, Any]:
    """Return the tree without the expressions of its checks, which only the YAML form has."""
    for leaf in rubric.leaves():
        if leaf.check is not None and leaf.verdict is not None:
            leaf.verdict = replace(leaf.verdict, reasoning="")
    return tree_json(rubric)


@pytest.mark.parametrize("task", TASKS)
async def test_both_forms_of_a_task_give_equal_trees(task: str) -> None:
    answer = (examples_dir() / "demo" / task / "answer_1.md").read_text("utf-8")

    from_python = await try_judge(FOLDER / f"{task}.py", answer, PAGES)
    from_yaml = await try_judge(FOLDER / "as_yaml" / f"{task}.yaml", answer, PAGES)

    assert from_yaml.score.high > 0
    assert [one.value for one in from_yaml.extractions] == [one.value for one in from_python.extractions]
    assert _tree(from_yaml.rubric) == _tree(from_python.rubric)
    assert from_yaml.judge.description == from_python.judge.description


@pytest.mark.parametrize("task", TASKS)
async def test_an_empty_answer_scores_zero_and_gives_equal_trees(task: str) -> None:
    from_python = await try_judge(FOLDER / f"{task}.py", "I could not find out.", PAGES)
    from_yaml = await try_judge(FOLDER / "as_yaml" / f"{task}.yaml", "I could not find out.", PAGES)

    assert from_yaml.score.value == 0
    assert _tree(from_yaml.rubric) == _tree(from_python.rubric)
    assert lint(from_yaml.rubric) == lint(from_python.rubric)
