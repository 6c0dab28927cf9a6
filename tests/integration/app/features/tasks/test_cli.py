from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.fakes.warm_start import warm_assay
from tests.fakes.warm_trials import warm_trials  # noqa: F401 - fixture
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.usefixtures("warm_trials")

URL = "https://pellard.example/heron"
PAGE = "The Heron costs 430 crowns. It is a fine gauge."
ANSWER = f"## Heron\n- Price: 430 crowns\n- Source: {URL}\n"
JUDGE = """\
from pydantic import BaseModel

from judges.context import JudgeContext
from judges.registry import judge


class Found(BaseModel):
    price: str = ""
    sources: list[str] = []


@judge(task="heron", description="What does the gauge cost?")
async def heron(ctx: JudgeContext) -> None:
    found = await ctx.extract(Found, "Read out the price.")
    ctx.verify("price", "The Heron costs " + found.price, sources=found.sources)
    ctx.verify("fine", "It is a fine gauge" + (" " if found.price else ""), sources={sources})
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return the path of a custom judge, with an answer and its page."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "answer.md").write_text(ANSWER)
    (tmp_path / "pages.json").write_text(json.dumps({URL: PAGE}))
    return tmp_path / "mine" / "heron.py"


CUSTOM_FILES = ("--judges", "mine", "--answer", "answer.md", "--pages", "pages.json")


def test_custom_judge_is_tested_without_a_browser(assay: RunCommand, mine: Path) -> None:
    mine.write_text(JUDGE.replace("{sources}", "found.sources"))

    ended = assay("tasks", "test", "heron", *CUSTOM_FILES)

    assert ended.code == 0, ended.err
    assert "Every value, citation and leaf is protected." in ended.out


def test_claim_that_nothing_changes_fails_the_command(assay: RunCommand, mine: Path) -> None:
    mine.write_text(JUDGE.replace("{sources}", "None").replace("+ found.price", "+ '430 crowns'"))

    ended = assay("tasks", "test", "heron", *CUSTOM_FILES)

    assert ended.code == 100, ended.out
    assert "NOT PROTECTED  price" in ended.out
    assert "A missing value is detected, but a wrong one is not" in ended.out


def test_answer_without_passing_claims_is_rejected(assay: RunCommand, mine: Path) -> None:
    mine.write_text(JUDGE.replace("{sources}", "found.sources"))
    (mine.parent.parent / "answer.md").write_text("I could not find out.")

    ended = assay("tasks", "test", "heron", *CUSTOM_FILES)

    assert ended.code == 2
    assert "no claim of this answer passes" in ended.err


@pytest.mark.parametrize("pages", ["[1]", '{"https://a.example": 1}', "{"])
def test_invalid_pages_file_is_rejected(assay: RunCommand, mine: Path, pages: str) -> None:
    mine.write_text(JUDGE.replace("{sources}", "found.sources"))
    (mine.parent.parent / "pages.json").write_text(pages)
    ended = assay("tasks", "test", "heron", *CUSTOM_FILES)
    assert ended.code == 2
    assert "--pages" in ended.err


def test_unknown_task_and_broken_judge_have_different_exit_codes(assay: RunCommand, mine: Path) -> None:
    assert assay("tasks", "test", "karow_visit").code == 2
    mine.write_text("def (")
    assert assay("tasks", "test", "heron", *CUSTOM_FILES).code == 1


def test_first_task_of_the_documentation_passes_its_test(assay: RunCommand, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[5] / "docs" / "add-a-task.md").read_text("utf-8")
    files = {"yaml": "mine/walden_pond.yaml", "markdown": "answer.md", "json": "pages.json"}
    (tmp_path / "mine").mkdir()
    for language, name in files.items():
        (tmp_path / name).write_text(guide.partition(f"```{language}\n")[2].partition("```")[0])

    ended = assay("tasks", "test", "walden_pond", "--judges", "mine", "--answer", "answer.md", "--pages", "pages.json")

    assert ended.code == 0, ended.out
    assert "Every value, citation and leaf is protected." in ended.out
    assert "The correct answer scores 1, and an empty answer scores 0." in ended.out
    assert "lint:" not in ended.out


def test_command_tests_a_shipped_task_by_name(tmp_path: Path) -> None:
    """In an empty folder, without key, browser or server, and with the judge in a child process."""
    call = [warm_assay(), "tasks", "test", "pellard_gauges", "--json"]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, env={"PATH": os.defpath}, check=False)

    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert (report["task_id"], report["model"], report["fields"]["findings"]) == ("pellard_gauges", "lexical", [])
    assert report["scores"]["gold"]["score"] == {"value": 1.0, "low": 1.0, "high": 1.0}
