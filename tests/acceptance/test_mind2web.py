"""``assay suites mind2web`` against a stand-in model over HTTP, with manually computed figures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.cli.program import run
from tests.architecture.sources import ROOT
from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.mind2web import (
    FIGURES_SCORED_ZERO,
    FIGURES_SKIPPED,
    NINE_RANKS,
    mind2web_reply,
    nine_steps,
    write_scores,
    write_split,
)
from tests.fakes.warm_start import warm_assay
from tests.standin.call import Call
from tests.standin.faults import TOO_LONG, Fault
from tests.standin.llm import StandInLLM

COMMAND = ("suites", "mind2web", "--data-root", "data", "--split", "test_task")


@dataclass
class World:
    """Folder with data and scores, and a model. Commands run in this process, except one that is interrupted."""

    folder: Path
    model: StandInLLM
    captured: pytest.CaptureFixture[str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [warm_assay(), *COMMAND, *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, command: Sequence[str] = COMMAND) -> tuple[int, str, str]:
        """Return exit code, standard output and standard error."""
        with pytest.raises(SystemExit) as ended:
            run([*command, *arguments])
        captured = self.captured.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    def written(self, name: str) -> Any:
        return json.loads((self.folder / "out" / name).read_text())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[World]:
    write_split(tmp_path / "data", nine_steps())
    write_scores(tmp_path / "scores.pkl", NINE_RANKS)
    for name in os.environ:
        if name.startswith(("ASSAY_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("ASSAY_MODEL", "openai/gpt-4o")
    monkeypatch.chdir(tmp_path)
    with entered_in_thread(server := StandInLLM(fault_for=mind2web_reply)):
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield World(tmp_path, server, capsys)


SCORED = ("--scores-pickle", "scores.pkl")
WITH_OUTPUT = (*SCORED, "--output-dir", "out")


def approximately(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: approximately(each) for key, each in value.items()}
    if isinstance(value, list):
        return [approximately(each) for each in value]
    return pytest.approx(value)


def test_run_has_the_expected_figures(world: World):
    world.model.delay_s = 0.1  # so that requests overlap
    code, out, err = world.run(*WITH_OUTPUT, "--max-llm", "3")
    assert (code, "9/9 steps" in err, "Traceback" in err) == (0, True, False)
    assert "55.6" in out
    assert "MindAct Flan-T5-XL" in out
    metrics = world.written("mind2web_metrics.json")
    assert {key: metrics[key] for key in FIGURES_SCORED_ZERO} == approximately(FIGURES_SCORED_ZERO)
    assert metrics["micro"] == {
        "element_accuracy": metrics["element_acc"],
        "operation_f1": metrics["action_f1"],
        "step_success": metrics["step_acc"],
    }
    assert metrics["macro"]["step_success"] == metrics["marco_step_acc"]
    assert metrics["task_success"] == 0.2
    assert {key: metrics["policies"]["skip"][key] for key in FIGURES_SKIPPED} == approximately(FIGURES_SKIPPED)
    assert metrics["skipped"] == {"no_positive": 1, "positive_outside_top_k": 1, "single_candidate": 1}
    assert (metrics["seed"], metrics["model"], metrics["template"]) == (0, "openai/gpt-4o", "mindact@1")
    assert metrics["candidates"]["mrr"] == pytest.approx(7 / 9)
    assert 1 < world.model.max_in_flight <= 3


def test_fault_gives_bounds_and_the_next_run_requests_only_missing_steps(world: World):
    def failing(call: Call) -> Fault:
        broken = "Do what T4" in call.text.rpartition("'''")[2]
        return TOO_LONG if broken else mind2web_reply(call)

    world.model.fault_for = failing
    code, out, _ = world.run(*WITH_OUTPUT)
    assert code == 3
    assert "1 steps were not judged (1 llm_rejected)" in out
    metrics = world.written("mind2web_metrics.json")
    assert (metrics["status"], metrics["micro"]["element_accuracy"]) == ("incomplete", None)
    ends = [metrics["bounds"][end]["micro"]["element_accuracy"] for end in ("low", "high")]
    assert ends == approximately([5 / 9, 6 / 9])
    assert not (world.folder / "out" / "test_task_results_top50.json").exists()
    asked = len(world.model.calls)
    world.model.fault_for = mind2web_reply
    code, _, err = world.run(*WITH_OUTPUT)
    assert (code, "8 reused" in err) == (0, True)
    assert len(world.model.calls) == asked + 2  # the two rounds of T4
    assert world.written("mind2web_metrics.json")["marco_step_acc"] == pytest.approx(
        FIGURES_SCORED_ZERO["marco_step_acc"]
    )


def test_interrupted_run_continues_where_it_stopped(world: World):
    world.model.fault_for = lambda call: Fault(delay_s=600.0) if call.index >= 4 else mind2web_reply(call)
    process = world.start(*WITH_OUTPUT, "--max-llm", "1", "--no-cache")
    until = time.monotonic() + 240
    while len(world.model.calls) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert (process.returncode, "run the same command to resume" in err) == (130, True)
    world.model.fault_for = mind2web_reply
    code, _, err = world.run(*WITH_OUTPUT, "--no-cache")
    assert (code, "reused" in err) == (0, True)
    metrics = world.written("mind2web_metrics.json")
    assert {key: metrics[key] for key in FIGURES_SCORED_ZERO} == approximately(FIGURES_SCORED_ZERO)
    assert len(world.model.calls) <= 13 + 2  # requests in progress are sent again
    code, _, err = world.run(*WITH_OUTPUT, "--seed", "1")
    assert (code, "different seed" in err) == (1, True)


GUIDE_FIGURES = {
    "element_micro": 5 / 6,
    "action_micro": 1.0,
    "step_micro": 5 / 6,
    "element_macro": 3 / 4,
    "action_macro": 1.0,
    "step_macro": 3 / 4,
    "task_success": 3 / 4,
}
"""``nine_steps`` by the guide: T3_b has no positive, T3_c only one outside the top k, and T5 no other element, so they
are dropped; in T4 the model picks the wrong element."""


def test_command_line_of_the_guide_works_as_written(world: World):
    (world.folder / "config.yaml").write_text("model: openai/gpt-4o\nmax-llm: 2\n")
    command = (
        "scripts/eval_mind2web.py --config config.yaml --data-root data --split test_task --scores-pickle scores.pkl "
        "--top-k 50 --temperature 0.0 --output-dir out --max-examples 6"
    )
    script, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, ROOT / script, *arguments], capture_output=True, text=True, check=False, cwd=world.folder
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    metrics = world.written("mind2web_metrics.json")
    assert (metrics["protocol"], metrics["totals"]["evaluated_steps"], len(world.model.calls)) == ("guide", 6, 6)
    assert metrics["metrics"] == approximately(GUIDE_FIGURES)
