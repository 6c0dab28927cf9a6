"""The program in an environment with only the packages of the core, without the extras."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fakes.environments import environment_with
from tests.fakes.folders import service_folder
from tests.fakes.program import environment_for, running_service
from tests.fakes.sandbox import sandbox_variables

pytestmark = [pytest.mark.postgres, pytest.mark.browser]

JUDGE = """
from judges.registry import judge

@judge(task="sky", description="Say what colour the sky is.", version="1")
async def sky(ctx):
    ctx.check("blue", "blue" in ctx.answer.text)
"""


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """Interpreter with the installed project and the dependencies of its core. The database account can read it."""
    folder = service_folder("assay-environment-")
    yield environment_with(folder, ["assay"]).python
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "sky.py").write_text(JUDGE)
    for agent, text in (("me", "It is blue."), ("you", "It is green.")):
        (service_home / "answers" / agent / "sky").mkdir(parents=True)
        (service_home / "answers" / agent / "sky" / "answer_1.md").write_text(text)
    return service_home


def run(python: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = environment_for(home, ASSAY_JUDGES=str(home / "judges"), **sandbox_variables())
    command = [str(python), "-m", "app.cli", *arguments]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_commands_work_or_name_the_missing_extra(python: Path, home: Path):
    assert run(python, home, "--help").returncode == 0
    for agent in ("me", "you"):
        evaluated = run(python, home, "evaluate", "--agent", agent, "--json")
        assert evaluated.returncode == 0, evaluated.stderr
    summary = run(python, home, "results", "summary", "--agent", "me", "--results", "eval_results", "--json")
    assert summary.returncode == 0, summary.stderr
    document = json.loads(summary.stdout)
    assert (document["avg_score"], document["statistics"]) == (1.0, None)

    compared = run(python, home, "results", "compare", "eval_results/me", "eval_results/you")
    assert compared.returncode != 0
    assert "install the extra 'statistics'" in compared.stderr
    assert "Traceback" not in compared.stderr


def test_service_judges_and_names_the_missing_extra(python: Path, home: Path):
    environment = environment_for(home, ASSAY_JUDGES=str(home / "judges"), **sandbox_variables())
    program = [str(python), "-m", "app.cli"]
    with (
        running_service(home, environment, program=program, creates_database=True) as service,
        httpx.Client(base_url=service.url) as api,
    ):
        for agent, text in (("me", "It is blue."), ("you", "It is green.")):
            body = {"agent": agent, "task_id": "sky", "answers": [{"name": "a", "text": text}]}
            [job] = api.post("/v1/submissions", json=body).raise_for_status().json()["jobs"]
            with api.stream("GET", f"{job['url']}/events", timeout=240) as events:
                assert '"status":"succeeded"' in "".join(events.iter_lines()).replace(" ", "")
        rows = api.get("/v1/leaderboard").raise_for_status().json()["items"]
        assert [(row["agent"], row["avg_score"], row["statistics"]) for row in rows] == [
            ("me", 1.0, None),
            ("you", 0.0, None),
        ]

        refused = api.get("/v1/compare", params={"a": "me", "b": "you"})
        assert (refused.status_code, refused.json()["code"]) == (501, "NOT_INSTALLED")
        assert "install the extra 'statistics'" in refused.json()["detail"]
