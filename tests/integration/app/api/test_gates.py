"""``assay gate`` and the GitHub Action around it: real processes that ask a real service, which judged with a model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from app.server.application import create_app
from tests.architecture.sources import ROOT
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.served import served
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.judged_runs import PAGE, RIGHT, SILENT, URL, WRONG, judge_run, model, write_judges

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(180)]

ACTION = ROOT / ".github" / "actions" / "assay-gate" / "action.yml"
ASSAY = Path(sys.executable).parent / "assay"
GOOD = {"rivers": (RIGHT, RIGHT), "bridges": (RIGHT, RIGHT), "towers": (RIGHT, WRONG)}
WORSE = {"rivers": (RIGHT, WRONG), "bridges": (WRONG, WRONG), "towers": (RIGHT, WRONG)}
OPEN = {"rivers": (RIGHT, RIGHT), "bridges": (RIGHT, SILENT), "towers": (RIGHT, WRONG)}


@pytest.fixture
async def url(database_url: str, judges: Path, tmp_path: Path) -> AsyncIterator[str]:
    """A service that judged three runs of an agent: a good one, a worse one, and one with a silent model."""
    write_judges(judges)
    async with model() as stand_in:
        settings = settings_for_tests(
            data_dir=tmp_path / "data", database_url=database_url, model="openai/gpt-6-luna",
            openai_api_key="a key of the tests", openai_base_url=stand_in.base_url,
        )  # fmt: skip
        app = create_app(settings, workers=1, runtime=scripted_runtime(judges, {URL: PAGE}))
        with served(app) as address:
            for run, answers in (("good", GOOD), ("worse", WORSE), ("open", OPEN)):
                await judge_run(address, "walker", run, answers)
            yield address


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_"))}
    return outside | {"COLUMNS": "200"} | more


async def run(command: list[str], folder: Path, **more: str) -> Ended:
    """A process of its own; the loop goes on."""
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=90
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def test_the_exit_code_says_what_the_gate_came_to(url: str, tmp_path: Path):
    async def gate(name: str, *wanted: str) -> Ended:
        return await run([str(ASSAY), "gate", "--url", url, "--agent", "walker", "--run", name, *wanted], tmp_path)

    passed = await gate("good", "--min-score", "0.8", "--baseline", "walker@worse")
    assert (passed.code, passed.err) == (0, "")
    failed = await gate("worse", "--min-score", "0.8", "--baseline", "walker@good", "--max-regression", "0.1")
    assert failed.code == 100
    assert "failed: score: the score is 0.3333, below 0.8" in failed.err
    assert "failed: regression: the mean difference over 3 tasks is -0.5000" in failed.err
    undecided = await gate("open", "--min-score", "0.8")
    assert undecided.code == 3
    assert "open: judged: 1 of 3 answers were not judged" in undecided.err
    assert "open: score: the score is 0.6667 to 0.8333" in undecided.err
    # What is open can no longer save it.
    assert (await gate("open", "--min-score", "0.9")).code == 100
    # And with one answer of three allowed, what is certain is enough.
    assert (await gate("open", "--min-score", "0.6", "--max-not-judged", "0.34")).code == 0
    assert (await gate("nightly", "--min-score", "0.8")).code == 2
    nowhere = [str(ASSAY), "gate", "--url", "http://127.0.0.1:9", "--agent", "walker", "--min-score", "0.8"]
    assert (await run(nowhere, tmp_path)).code == 1


async def test_reports_are_written_for_test_panels_summaries_and_programs(url: str, tmp_path: Path):
    (tmp_path / "summary.md").write_text("what stood there before\n")
    reports = ["--junit", "reports/gate.xml", "--markdown", "summary.md", "--json"]
    command = [str(ASSAY), "gate", "--url", url, "--agent", "walker", "--run", "worse", "--min-score", "0.8", *reports]
    ended = await run(command, tmp_path)
    told = json.loads(ended.out)
    assert (told["gate"], told["exit_code"], ended.code) == ("failed", 100, 100)
    assert told["statistics"]["score"]["value"] == pytest.approx(1 / 3)
    suite = ElementTree.fromstring((tmp_path / "reports" / "gate.xml").read_text()).find("testsuite")
    assert suite is not None and suite.attrib["failures"] == "1"
    shown = (tmp_path / "summary.md").read_text()
    assert shown.startswith("what stood there before\n### assay gate, walker@worse: failed")


# The action, run as a runner of GitHub's would


def filled(text: str, inputs: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]]) -> str:
    """The expressions of a text, put in; those we know, and no other."""

    def value(found: re.Match[str]) -> str:
        parts = found[1].strip().split(".")
        if parts[0] == "inputs":
            return inputs[parts[1]]
        if parts == ["github", "action_path"]:
            return str(ACTION.parent)
        assert parts[0] == "steps" and parts[2] == "outputs", found[0]
        return outputs[parts[1]][parts[3]]

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def wanted(condition: str | None, inputs: Mapping[str, str]) -> bool:
    if condition is None:
        return True
    found = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) == '(.*)' \}\}", condition)
    assert found is not None, condition
    return inputs[found[1]] == found[2]


@dataclass(frozen=True)
class ActionEnded:
    code: int
    outputs: dict[str, str]
    summary: str
    err: str


async def act(folder: Path, **given: str) -> ActionEnded:
    """Run the steps of the action until one fails."""
    action: dict[str, Any] = yaml.safe_load(ACTION.read_text("utf-8"))
    inputs = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    assert inputs.keys() == action["inputs"].keys()
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
    for path in files.values():
        path.write_text("")
    outputs: dict[str, dict[str, str]] = {}
    code, err = 0, ""
    for step in action["runs"]["steps"]:
        if code or not wanted(step.get("if"), inputs):
            continue
        script = folder / "step.sh"
        script.write_text(step["run"])
        assert step["shell"] == "bash"
        variables = {name: filled(value, inputs, outputs) for name, value in step.get("env", {}).items()}
        variables |= {name: str(path) for name, path in files.items()}
        added = files["GITHUB_PATH"].read_text().split()
        variables["PATH"] = os.pathsep.join([*added, os.environ["PATH"]])
        # As the runner's documentation has it for `shell: bash`.
        ended = await run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], folder, **variables)
        code, err = ended.code, err + ended.err
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
    told = {name: filled(each["value"], inputs, outputs) for name, each in action["outputs"].items()}
    return ActionEnded(code, told, files["GITHUB_STEP_SUMMARY"].read_text(), err)


async def test_the_action_passes_fails_and_stays_open_as_the_command_does(url: str, tmp_path: Path):
    common = {"url": url, "agent": "walker", "assay": str(ASSAY), "min_score": "0.8"}
    passed = await act(tmp_path, **common, run="good", baseline="walker@worse", max_regression="0.1")
    assert (passed.code, passed.outputs["state"], passed.outputs["exit-code"]) == (0, "passed", "0")
    assert "### assay gate, walker@good: passed" in passed.summary
    assert json.loads((tmp_path / passed.outputs["json"]).read_text())["gate"] == "passed"
    assert ElementTree.parse(tmp_path / passed.outputs["junit"]).getroot().tag == "testsuites"
    failed = await act(tmp_path, **common, run="worse", reports="elsewhere/reports")
    assert (failed.code, failed.outputs["state"]) == (100, "failed")
    assert "the score is 0.3333, below 0.8" in failed.err
    assert (tmp_path / "elsewhere" / "reports" / "gate.xml").exists()
    undecided = await act(tmp_path, **common, run="open")
    assert (undecided.code, undecided.outputs["state"]) == (3, "open")
    forgiven = await act(tmp_path, **common, run="open", allow_open="true")
    assert (forgiven.code, forgiven.outputs["state"]) == (0, "open")
    unknown = await act(tmp_path, **common, run="nightly")
    assert (unknown.code, unknown.outputs["state"]) == (2, "error")


async def test_the_action_sets_assay_up_from_its_own_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first step alone, in a checkout whose set-up is this environment's program."""
    checkout = tmp_path / "checkout"
    action = checkout / ".github" / "actions" / "assay-gate" / "action.yml"
    action.parent.mkdir(parents=True)
    action.write_text(ACTION.read_text("utf-8"))
    (checkout / "Makefile").write_text(f"setup:\n\tmkdir -p .venv/bin && ln -s {ASSAY} .venv/bin/assay\n")
    monkeypatch.setattr(sys.modules[__name__], "ACTION", action)
    folder = tmp_path / "work"
    folder.mkdir()
    ended = await act(folder, agent="walker", min_score="0.8", url="http://127.0.0.1:9", assay="")
    assert (folder / "github_path").read_text().split() == [str(checkout / ".venv" / "bin")]
    assert (ended.code, ended.outputs["state"]) == (1, "error")
    assert "no server answers at http://127.0.0.1:9" in ended.err


async def test_the_action_takes_an_input_for_what_it_is_and_never_for_a_command(tmp_path: Path):
    hostile = 'x"; touch stolen; echo "$(touch stolen)`touch stolen`'
    ended = await act(tmp_path, agent=hostile, run="$(touch stolen)", assay=str(ASSAY), min_score="0.8", out="nowhere")
    assert ended.code == 2
    assert not (tmp_path / "stolen").exists()
    steps = yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]
    assert not [step["name"] for step in steps if "${{" in step["run"]]
