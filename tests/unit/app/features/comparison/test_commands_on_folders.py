"""``assay results summary``, ``compare`` and ``gate`` on result folders, without server and model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judges.result import AnswerFolder, write_json
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, result_of, rubric_of
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

TASKS = [f"task_{nth}" for nth in range(8)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create three agents: all leaves pass, the second leaf of each task fails, one leaf is not judged."""
    for agent, second in (("right", PASSED), ("half", FAILED), ("open", PASSED)):
        for nth, task in enumerate(TASKS):
            outcome = NOT_JUDGED if agent == "open" and not nth else second
            rubric = rubric_of(leaf("a", claim="x"), leaf("b", outcome, claim="y", weight=nth + 1), task_id=task)
            write(tmp_path / "out", agent, task, result_of(rubric, agent_name=agent))
    return tmp_path / "out"


def write(out: Path, agent: str, task: str, result: dict[str, Any]) -> Path:
    place = AnswerFolder(out=out, agent=agent, task_id=task, answer_name="answer_1.md")
    path = place.results / "20260101_000000_answer_1.md.json"
    write_json(path, result)
    return path


def test_summary_has_intervals_and_the_public_figures(assay: RunCommand, folder: Path) -> None:
    ended = assay("results", "summary", "--agent", "half", "--results", str(folder))
    assert ended.code == 0
    assert "Gaffke over 8 tasks" in " ".join(ended.out.split())
    assert "avg_score" in ended.out and "pass^1" in ended.out
    assert "0 of 8 answers not judged" in ended.out
    document = json.loads(assay("results", "summary", "--agent", "half", "--results", str(folder), "--json").out)
    assert document["statistics"]["success"]["value"] == 0.0
    assert document["num_tasks"] == 8


def test_comparison_names_the_higher_side_and_its_p_value(assay: RunCommand, folder: Path) -> None:
    ended = assay("results", "compare", str(folder / "half"), str(folder / "right"))
    assert ended.code == 0
    assert f"{folder}/right is higher than {folder}/half" in ended.out
    assert "exact sign-flip of 8 tasks" in ended.out
    document = json.loads(assay("results", "compare", str(folder / "half"), str(folder / "right"), "--json").out)
    assert document["comparisons"][0]["score"]["sign_flip"]["p"] == 2 / 256


@pytest.fixture
def mixed(folder: Path) -> Path:
    """Give one answer of the agent "half" another judge than all other answers. Return the folder."""
    path = folder / "half" / TASKS[0] / "answer_1" / "results" / "20260101_000000_answer_1.md.json"
    write_json(path, json.loads(path.read_text()) | {"model": "another-judge"})
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("results", "summary", "--agent", "half", "--results", "out"),
        ("results", "gate", "--agent", "right", "--results", "out", "--baseline", "out/half"),
    ],
)
def test_scores_of_different_judges_are_mixed_only_on_request(
    assay: RunCommand, mixed: Path, arguments: tuple[str, ...]
) -> None:
    refused = assay(*arguments)
    assert refused.code == 2 and refused.out == ""
    assert "different judges" in refused.err and "another-judge (1 answer)" in refused.err
    assert "--mix-judges" in refused.err
    accepted = assay(*arguments, "--mix-judges")
    assert accepted.code == 0, accepted.err


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (["--agent", "right", "--min-score", "0.9"], 0, ""),
        (["--agent", "half", "--min-score", "0.9"], 100, "failed: score"),
        (["--agent", "open", "--min-score", "0.9"], 3, "open: judged: 1 of 8 answers were not judged"),
        (["--agent", "nobody", "--min-score", "0.9"], 2, "no such folder"),
        (["--agent", "right", "--max-regression", "0.1"], 2, "--max-regression requires --baseline"),
    ],
)
def test_gate_exit_code_and_message(
    assay: RunCommand, folder: Path, wanted: list[str], code: int, message: str
) -> None:
    ended = assay("results", "gate", "--results", str(folder), *wanted)
    assert ended.code == code
    assert message in ended.err
