"""The wheel in an environment with only the packages of the core, without the extras.

Our packages must work beside those of a user with the same names, in the working directory and in ``PYTHONPATH``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.fakes.environments import build_wheel, environment_with
from tests.fakes.folders import service_folder
from tests.fakes.program import environment_for
from tests.fakes.sandbox import sandbox_variables

pytestmark = [pytest.mark.postgres, pytest.mark.browser]

OUR_NAMES = ("answers", "app", "cache", "judges", "rubrics")
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
    core = [one for one in metadata.requires("assay") or () if "extra ==" not in one]
    environment = environment_with(folder, core)
    with zipfile.ZipFile(build_wheel(ROOT, folder)) as archive:
        archive.extractall(environment.site_packages)
    yield environment.python
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(service_home: Path) -> Path:
    for name in OUR_NAMES:
        (service_home / name).mkdir()
        (service_home / name / "__init__.py").write_text("raise RuntimeError('a package of the user')\n")
    (service_home / "judges" / "sky.py").write_text(JUDGE)
    for agent, text in (("me", "It is blue."), ("you", "It is green.")):
        (service_home / "answers" / agent / "sky").mkdir(parents=True)
        (service_home / "answers" / agent / "sky" / "answer_1.md").write_text(text)
    return service_home


def run_python(python: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = environment_for(home, ASSAY_JUDGES=str(home / "judges"), PYTHONPATH=str(home), **sandbox_variables())
    command = [str(python), *arguments]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False)


def run(python: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(python, home, "-m", "assay", *arguments)


def test_site_packages_contain_only_names_of_this_project(python: Path):
    [site] = python.parents[1].glob("lib/python*/site-packages")
    ours = {path.name for path in site.iterdir() if not path.is_symlink() and path.suffix != ".dist-info"}
    assert ours == {"assay", "assay_client", "mind2web2"}
    imports = "import mind2web2; from mind2web2 import Evaluator"
    subprocess.run([str(python), "-c", imports], check=True, timeout=120)


def test_commands_work_or_name_the_missing_extra(python: Path, home: Path):
    assert run(python, home, "--help").returncode == 0
    for agent in ("me", "you"):
        evaluated = run(python, home, "evaluate", "--agent", agent, "--json")
        assert evaluated.returncode == 0, evaluated.stderr
    both = run(python, home, "evaluate", "--agent", "me", "--agent", "you")
    assert "you is worse on the only task. For a significance test, install the extra 'statistics'" in both.stdout
    summary = run(python, home, "results", "summary", "--agent", "me", "--results", "eval_results", "--json")
    assert summary.returncode == 0, summary.stderr
    document = json.loads(summary.stdout)
    assert (document["avg_score"], document["statistics"]) == (1.0, None)

    gate = ("results", "gate", "--agent", "me", "--results", "eval_results")
    assert run(python, home, *gate, "--min-score", "0.9", "--min-success", "0.9").returncode == 0
    assert run(python, home, *gate, "--min-score", "0.9", "--min-lower-bound", "0.1").returncode == 1

    compared = run(python, home, "results", "compare", "eval_results/me", "eval_results/you")
    assert compared.returncode == 0, compared.stderr
    assert "you is worse on the only task. For a significance test, install the extra" in compared.stdout


def test_created_python_task_passes_its_test(python: Path, home: Path):
    created = run(python, home, "tasks", "new", "old_bridge", "--python")
    [command] = re.findall("test it: python (.+)", created.stderr)
    tested = run_python(python, home, command)
    assert "Ran 4 tests" in tested.stderr, tested.stderr
    assert tested.returncode == 0, tested.stderr
