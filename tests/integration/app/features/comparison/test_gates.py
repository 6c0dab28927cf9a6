"""``assay results gate`` and its GitHub Action, as real processes against a real service with judged runs."""

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

from tests.architecture.sources import ROOT
from tests.fakes.program import clean_environment
from tests.fakes.warm_start import warm_assay
from tests.integration.app.features.comparison.judged_runs import (
    RIGHT,
    SILENT,
    WRONG,
    comparison_service,
    judge_run,
)

pytestmark = pytest.mark.postgres

ACTION = ROOT / ".github" / "actions" / "assay-gate" / "action.yml"
GOOD = {"rivers": (RIGHT, RIGHT), "bridges": (RIGHT, RIGHT), "towers": (RIGHT, WRONG)}
WORSE = {"rivers": (RIGHT, WRONG), "bridges": (WRONG, WRONG), "towers": (RIGHT, WRONG)}
OPEN = {"rivers": (RIGHT, RIGHT), "bridges": (RIGHT, SILENT), "towers": (RIGHT, WRONG)}


@pytest.fixture
async def url(database_url: str, judges: Path, tmp_path: Path) -> AsyncIterator[str]:
    """Service with three judged runs of an agent: a good one, a worse one, and one with unjudged leaves."""
    async with comparison_service(database_url, judges, tmp_path / "data") as address:
        for run, answers in (("good", GOOD), ("worse", WORSE), ("open", OPEN)):
            await judge_run(address, "walker", run, answers)
        yield address


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


async def run(command: list[str], folder: Path, **more: str) -> Ended:
    """Run the command in a thread, so that the event loop continues."""
    env = clean_environment(COLUMNS="200", **more)
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def test_exit_code_reports_gate_state(url: str, tmp_path: Path):
    async def gate(name: str, *options: str) -> Ended:
        return await run(
            [warm_assay(), "results", "gate", "--url", url, "--agent", "walker", "--run", name, *options], tmp_path
        )

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
    # The unjudged answers cannot change the result.
    assert (await gate("open", "--min-score", "0.9")).code == 100
    # With one unjudged answer of three allowed, the lower bound is enough.
    assert (await gate("open", "--min-score", "0.6", "--max-not-judged", "0.34")).code == 0
    assert (await gate("nightly", "--min-score", "0.8")).code == 2
    unreachable = [warm_assay(), "results", "gate", "--url", "http://0.0.0.0:9", "--agent", "a", "--min-score", "0.8"]
    assert (await run(unreachable, tmp_path)).code == 1


async def test_gate_writes_junit_markdown_and_json_reports(url: str, tmp_path: Path):
    (tmp_path / "summary.md").write_text("what stood there before\n")
    reports = ["--junit", "reports/gate.xml", "--markdown", "summary.md", "--json"]
    command = [
        warm_assay(),
        "results",
        "gate",
        "--url",
        url,
        "--agent",
        "walker",
        "--run",
        "worse",
        "--min-score",
        "0.8",
        *reports,
    ]
    ended = await run(command, tmp_path)
    result = json.loads(ended.out)
    assert (result["gate"], result["exit_code"], ended.code) == ("failed", 100, 100)
    assert result["statistics"]["score"]["value"] == pytest.approx(1 / 3)
    suite = ElementTree.fromstring((tmp_path / "reports" / "gate.xml").read_text()).find("testsuite")
    assert suite is not None and suite.attrib["failures"] == "1"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("what stood there before\n### assay results gate, walker@worse: failed")


# The action, run like a GitHub runner does


def expand_expressions(text: str, inputs: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]]) -> str:
    """Replace the expressions in a text; unknown expressions are an error."""

    def value(found: re.Match[str]) -> str:
        parts = found[1].strip().split(".")
        if parts[0] == "inputs":
            return inputs[parts[1]]
        if parts == ["github", "action_path"]:
            return str(ACTION.parent)
        assert parts[0] == "steps" and parts[2] == "outputs", found[0]
        return outputs[parts[1]][parts[3]]

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def is_enabled(condition: str | None, inputs: Mapping[str, str]) -> bool:
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


async def run_action(folder: Path, **given: str) -> ActionEnded:
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
        if code or not is_enabled(step.get("if"), inputs):
            continue
        script = folder / "step.sh"
        script.write_text(step["run"])
        assert step["shell"] == "bash"
        variables = {name: expand_expressions(value, inputs, outputs) for name, value in step.get("env", {}).items()}
        variables |= {name: str(path) for name, path in files.items()}
        added = files["GITHUB_PATH"].read_text().split()
        variables["PATH"] = os.pathsep.join([*added, os.environ["PATH"]])
        # The documented command of the runner for `shell: bash`.
        ended = await run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], folder, **variables)
        code, err = ended.code, err + ended.err
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        outputs[step.get("id", "")] = dict(line.split("=", 1) for line in lines)
    result = {name: expand_expressions(each["value"], inputs, outputs) for name, each in action["outputs"].items()}
    return ActionEnded(code, result, files["GITHUB_STEP_SUMMARY"].read_text(), err)


async def test_action_outputs_match_the_command(url: str, tmp_path: Path):
    common = {"url": url, "agent": "walker", "assay": warm_assay(), "min_score": "0.8"}
    passed = await run_action(tmp_path, **common, run="good", baseline="walker@worse", max_regression="0.1")
    assert (passed.code, passed.outputs["state"], passed.outputs["exit-code"]) == (0, "passed", "0")
    assert "### assay results gate, walker@good: passed" in passed.summary
    assert json.loads((tmp_path / passed.outputs["json"]).read_text())["gate"] == "passed"
    assert ElementTree.parse(tmp_path / passed.outputs["junit"]).getroot().tag == "testsuites"
    failed = await run_action(tmp_path, **common, run="worse", reports="elsewhere/reports")
    assert (failed.code, failed.outputs["state"]) == (100, "failed")
    assert "the score is 0.3333, below 0.8" in failed.err
    assert (tmp_path / "elsewhere" / "reports" / "gate.xml").exists()
    undecided = await run_action(tmp_path, **common, run="open")
    assert (undecided.code, undecided.outputs["state"]) == (3, "open")
    allowed = await run_action(tmp_path, **common, run="open", allow_open="true")
    assert (allowed.code, allowed.outputs["state"]) == (0, "open")
    unknown = await run_action(tmp_path, **common, run="nightly")
    assert (unknown.code, unknown.outputs["state"]) == (2, "error")


async def test_action_installs_assay_from_its_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Checkout whose set-up links the program of this environment."""
    checkout = tmp_path / "checkout"
    action = checkout / ".github" / "actions" / "assay-gate" / "action.yml"
    action.parent.mkdir(parents=True)
    action.write_text(ACTION.read_text("utf-8"))
    (checkout / "Makefile").write_text(f"setup:\n\tmkdir -p .venv/bin && ln -s {warm_assay()} .venv/bin/assay\n")
    monkeypatch.setattr(sys.modules[__name__], "ACTION", action)
    folder = tmp_path / "work"
    folder.mkdir()
    ended = await run_action(folder, agent="walker", min_score="0.8", url="http://0.0.0.0:9", assay="")
    assert (folder / "github_path").read_text().split() == [str(checkout / ".venv" / "bin")]
    assert (ended.code, ended.outputs["state"]) == (1, "error")
    assert "no server answers at http://0.0.0.0:9" in ended.err


async def test_action_inputs_are_never_executed(tmp_path: Path):
    hostile = 'x"; touch stolen; echo "$(touch stolen)`touch stolen`'
    ended = await run_action(
        tmp_path, agent=hostile, run="$(touch stolen)", assay=warm_assay(), min_score="0.8", results="nowhere"
    )
    assert ended.code == 2
    assert not (tmp_path / "stolen").exists()
    steps = yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]
    assert not [step["name"] for step in steps if "${{" in step["run"]]
