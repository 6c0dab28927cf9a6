"""``mind2web2 evaluate`` against a model server: files, output, exit codes and judge options."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mind2web2.cli import main
from mind2web2.results import load_latest_result
from tests.compat.test_eval_runner import SCRIPT
from tests.standin.faults import WRONG_KEY
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=keyword_rule({"it is wrong": False})) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with one script and no answers."""
    monkeypatch.chdir(tmp_path)
    add_script(tmp_path, "bridge")
    return tmp_path


def add_script(root: Path, task: str, text: str = SCRIPT, version: str = "2026_10_01") -> None:
    folder = root / "eval_scripts" / version
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{task}.py").write_text(text)


def add_answer(root: Path, task: str, k: int = 1, text: str = "It is right.") -> None:
    folder = root / "answers" / "otter" / task
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"answer_{k}.md").write_text(text)


async def evaluate(*options: str) -> int:
    return await asyncio.to_thread(main, ["evaluate", "otter", *options])


def files(root: Path) -> set[str]:
    """Return the written files without stamps."""
    return {
        "/".join(part[16:] if part[:8].isdigit() else part for part in path.relative_to(root).parts)
        for path in root.rglob("*")
        if path.is_file()
    }


def metrics(root: Path) -> Any:
    return json.loads((root / "eval_results" / "otter" / "metrics.json").read_text())


async def test_run_writes_results_metrics_report_and_logs(project: Path, model: StandInLLM, capsys):
    add_answer(project, "bridge", 1)
    add_answer(project, "bridge", 2, "It is not.")
    (project / "answers/otter/bridge/answer_2.meta.json").write_text('{"time_seconds": 60}')
    assert await evaluate() == 0
    answers = {
        f"bridge/answer_{k}/{name}"
        for k in (1, 2)
        for name in (
            f"answer_{k}.md", f"results/answer_{k}.md.json", f"logs/answer_{k}.log", f"logs/answer_{k}.jsonl",
        )
    }  # fmt: skip
    run = {"logs/evaluate.log", "logs/evaluate.jsonl", "metrics.json", "report.html"}
    assert files(project / "eval_results" / "otter") == answers | run | {"bridge/answer_2/answer_2.meta.json"}
    assert metrics(project)["partial_completion"]["per_run"] == [1.0, 0.5]
    shown = capsys.readouterr()
    assert "answers: 2, tasks: 1, judge: gpt-6-luna reasoning_effort max, scripts: " in shown.err
    assert "/2] bridge answer_2.md: score 0.50\n" in shown.err
    assert "report: eval_results/otter/report.html" in shown.out


async def test_judge_options_replace_what_the_script_names(project: Path, model: StandInLLM):
    add_answer(project, "bridge")
    options = ("--judge-model", "gpt-6-terra", "--judge-reasoning-effort", "high", "--judge-temperature", "0.5")
    assert await evaluate(*options) == 0
    described = {"model": "gpt-6-terra", "reasoning_effort": "high", "temperature": 0.5}
    assert {(call.model, call.params["reasoning_effort"], call.params["temperature"]) for call in model.calls} == {
        ("gpt-6-terra", "high", 0.5)
    }
    result = load_latest_result(project / "eval_results/otter/bridge/answer_1")
    assert result is not None
    assert (result["judge"], result["judge_model"], result["extract_model"]) == (
        described,
        "gpt-6-terra",
        "gpt-6-terra",
    )


async def test_listed_task_without_script_leaves_its_answers_without_result(project: Path, model: StandInLLM, capsys):
    add_answer(project, "bridge")
    add_answer(project, "gauge")
    (project / "tasks.csv").write_text("task_id,domain\nbridge,history\ngauge,rivers\n")
    assert await evaluate("--task-list", "tasks.csv") == 1
    assert metrics(project)["missing_results"] == [{"task_id": "gauge", "run": 1}]
    shown = capsys.readouterr().err
    assert "eval_scripts/2026_10_01/gauge.py" in shown
    assert "1 of 2 answers have no result" in shown


async def test_chosen_task_writes_a_report_and_no_metrics(project: Path, model: StandInLLM):
    add_script(project, "gauge")
    add_answer(project, "bridge")
    add_answer(project, "gauge")
    assert await evaluate("--task", "gauge", "--task", "gauge") == 0
    written = files(project / "eval_results" / "otter")
    assert "report.html" in written and "metrics.json" not in written
    assert not any(name.startswith("bridge") for name in written)


async def test_rejected_requests_leave_the_answer_without_result(project: Path, model: StandInLLM, capsys):
    add_answer(project, "bridge")
    model.always = WRONG_KEY
    assert await evaluate() == 1
    assert load_latest_result(project / "eval_results/otter/bridge/answer_1") is None
    assert metrics(project)["missing_results"] == [{"task_id": "bridge", "run": 1}]
    assert "bridge answer_1.md: no result: " in capsys.readouterr().err


async def test_client_without_key_is_wrong_usage(project: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    add_answer(project, "bridge")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert await evaluate() == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err
