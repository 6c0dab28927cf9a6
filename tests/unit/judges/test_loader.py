from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from judges.errors import JudgeNotLoadable
from judges.loader import load_judge, load_judges
from judges.registry import JudgeKind

NATIVE = """
from judges.registry import judge

@judge(task="{task}", description="What?", version="7")
async def mine(ctx):
    ctx.check("a", True)
"""
SCRIPT = '''
"""What the task asks."""
raise RuntimeError("a public script is not run while it is listed")

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
    return {}
'''


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text, "utf-8")
    return path


def test_native_judge_is_imported_with_its_metadata(tmp_path: Path):
    path = write(tmp_path, "t1", NATIVE.format(task="t1"))
    judge = load_judge(path)
    assert (judge.task, judge.kind, judge.version, judge.name) == ("t1", JudgeKind.NATIVE, "7", "mine")
    assert judge.path == path.resolve()
    assert judge.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert judge.coroutine is not None


def test_public_script_is_listed_without_being_executed(tmp_path: Path):
    judge = load_judge(write(tmp_path, "t2", SCRIPT))
    assert (judge.task, judge.kind, judge.description) == ("t2", JudgeKind.MIND2WEB2, "What the task asks.")
    assert judge.coroutine is None
    assert judge.name == "evaluate_answer"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:", "cannot be parsed"),
        ("x = 1", "neither"),
        ("raise ValueError('boom')", "boom"),
        ("async def evaluate_answer(client, answer, **kw): ...", "agent_name, answer_name, cache, logger, semaphore"),
        (NATIVE.format(task="other"), "'other'"),
    ],
)
def test_error_of_a_broken_file_states_the_cause(tmp_path: Path, text: str, message: str):
    with pytest.raises(JudgeNotLoadable, match=message):
        load_judge(write(tmp_path, "t", text))


def test_two_loads_do_not_share_a_module(tmp_path: Path):
    path = write(
        tmp_path, "t", "from pydantic import BaseModel\nclass V(BaseModel):\n    x: int = 0\n" + NATIVE.format(task="t")
    )
    one, other = load_judge(path), load_judge(path)
    assert one.coroutine is not None and other.coroutine is not None
    assert one.coroutine.__module__ != other.coroutine.__module__


def test_catalogue_lists_valid_and_broken_files_of_all_folders(tmp_path: Path):
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
    write(first, "a", NATIVE.format(task="a"))
    write(first, "bad", "raise ValueError('boom')")
    write(first, "_helper", "raise ValueError('never imported')")
    (first / "notes.txt").write_text("no judge", "utf-8")
    write(second, "a", SCRIPT)
    write(second, "b", SCRIPT)
    write(second, "bad", NATIVE.format(task="bad"))
    catalogue = load_judges([first, second, tmp_path / "missing"])
    assert {task: judge.kind for task, judge in catalogue.judges.items()} == {"a": "native", "b": "mind2web2"}
    assert set(catalogue.broken) == {"bad"}
    assert "boom" in catalogue.broken["bad"]
    assert str(first) in catalogue.broken["bad"]
