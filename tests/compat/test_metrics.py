"""Metrics of an agent: ``metrics.json``, the report and the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from statistics import pstdev
from typing import Any

import pytest

from mind2web2.cli import main
from mind2web2.metrics import (
    agent_metrics,
    is_without_result,
)
from mind2web2.submission import TaskInfo
from tests.compat.test_submission import write

JUDGE = {"model": "gpt-6-luna", "reasoning_effort": "max", "temperature": None}


class Project:
    """Folders of one agent, ``me``."""

    def __init__(self, root: Path) -> None:
        self.answers, self.results = root / "answers", root / "eval_results"

    def answer(self, task: str, run: int, text: str = "one two https://a.com", seconds: float | None = None) -> Path:
        path = write(self.answers / "me" / task / f"answer_{run}.md", text)
        if seconds is not None:
            write(path.with_suffix(".meta.json"), json.dumps({"time_seconds": seconds}))
        return path

    def result(self, task: str, run: int, score: object, stamp: str = "20261101_120000", /, **more: Any) -> Path:
        """Store a result for the current text of the answer."""
        answer = self.answers / "me" / task / f"answer_{run}.md"
        body: dict[str, Any] = {"final_score": score, "judge_model": "gpt-6-luna", "judge": JUDGE}
        if answer.exists():
            body["answer_sha256"] = hashlib.sha256(answer.read_bytes()).hexdigest()
        folder = self.results / "me" / task / f"answer_{run}"
        return write(folder / "results" / f"{stamp}_answer_{run}.md.json", json.dumps(body | more))

    def judged(self, task: str, run: int, score: object, /, **more: Any) -> None:
        self.answer(task, run)
        self.result(task, run, score, **more)

    def metrics(self, *tasks: TaskInfo, runs: int | None = None, task_list: str | None = None) -> dict[str, Any]:
        return agent_metrics("me", self.answers, self.results, list(tasks) or None, runs, task_list)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def leaf(reason: str | None, *faults: str) -> dict[str, Any]:
    outcome = "passed" if reason is None else "not_judged"
    votes = [{"result": None, "fault": fault} for fault in faults]
    return {"id": "a", "children": [], "outcome": outcome, "reason": reason, "votes": votes}


def incomplete(*leaves: dict[str, Any], **more: Any) -> dict[str, Any]:
    tree = {"id": "root", "children": list(leaves)}
    return {"status": "incomplete", "eval_breakdown": [{"info": [], "verification_tree": tree}], **more}


def test_scores_are_averaged_over_tasks_and_then_over_runs(project: Project):
    for task, scores in {"a": [1.0, 0.5, 0.0], "b": [0.0, 1.0, 1.0]}.items():
        for run, score in enumerate(scores, start=1):
            project.judged(task, run, score)
    metrics = project.metrics()
    assert (metrics["agent_name"], metrics["num_tasks"], metrics["num_runs"]) == ("me", 2, 3)
    partial, success = metrics["partial_completion"], metrics["success_rate"]
    assert partial["per_run"] == [0.5, 0.75, 0.5]
    assert partial["mean"] == pytest.approx(7 / 12)
    assert partial["std"] == pytest.approx(pstdev([0.5, 0.75, 0.5]))
    assert success == {"mean": 0.5, "std": 0.0, "per_run": [0.5, 0.5, 0.5]}
    assert metrics["pass_at_k"] == {"k": 3, "value": 1.0}
    assert metrics["per_task"] == {
        "a": {"scores": [1.0, 0.5, 0.0], "pass": True},
        "b": {"scores": [0.0, 1.0, 1.0], "pass": True},
    }
    assert metrics["partial_completion_bounds"] == {"low": pytest.approx(7 / 12), "high": pytest.approx(7 / 12)}


def test_missing_answers_missing_results_and_stale_results_count_as_zero_and_are_listed(project: Project):
    project.judged("a", 1, 1.0)
    project.answer("a", 2)
    project.judged("b", 1, 1.0)
    project.answer("b", 1, "changed after judging")
    project.result("b", 2, 1.0)  # a result without an answer
    metrics = project.metrics(TaskInfo("a"), TaskInfo("b"), TaskInfo("c"), runs=2)
    assert metrics["partial_completion"]["per_run"] == [pytest.approx(1 / 3), 0.0]
    assert metrics["missing_answers"] == [
        {"task_id": "b", "run": 2},
        {"task_id": "c", "run": 1},
        {"task_id": "c", "run": 2},
    ]
    assert metrics["missing_results"] == [{"task_id": "a", "run": 2}]
    assert metrics["stale_results"] == [{"task_id": "b", "run": 1}]
    # unknown: the missing and the stale result
    assert metrics["partial_completion_bounds"] == {"low": pytest.approx(1 / 6), "high": pytest.approx(3 / 6)}


@pytest.mark.parametrize("score", [None, True, 1.5, float("nan")])
def test_result_without_a_valid_score_is_missing(score: object, project: Project):
    project.judged("a", 1, score)
    assert project.metrics()["missing_results"] == [{"task_id": "a", "run": 1}]


def test_result_that_an_outage_left_incomplete_is_missing_and_keeps_its_bounds(project: Project):
    bounds = {"value": None, "low": 0.5, "high": 1.0}
    project.judged("a", 1, 0.5, **incomplete(leaf(None), leaf("llm_unavailable")), score=bounds)
    metrics = project.metrics()
    assert metrics["missing_results"] == [{"task_id": "a", "run": 1}]
    assert metrics["partial_completion"]["mean"] == 0.0
    assert metrics["partial_completion_bounds"] == {"low": 0.5, "high": 1.0}


@pytest.mark.parametrize(
    ("result", "is_missing"),
    [
        ({}, False),
        ({"status": "incomplete"}, True),
        (incomplete(leaf("capture_blocked"), leaf("capture_failed"), leaf(None)), False),
        (incomplete(leaf("egress_denied"), leaf("llm_output_unusable")), False),
        (incomplete(leaf("llm_rejected")), True),
        (incomplete(leaf("no_majority", "llm_output_unusable", "llm_output_unusable")), False),
        (incomplete(leaf("no_majority", "llm_output_unusable", "llm_unavailable")), True),
        (incomplete(leaf("capture_blocked"), cut_short="script stopped after 900 s"), True),
    ],
)
def test_page_that_cannot_be_had_is_scored_and_an_outage_is_not(result: dict[str, Any], is_missing: bool):
    assert is_without_result(result) is is_missing


def test_time_is_in_minutes_over_the_answers_that_report_it(project: Project):
    project.answer("a", 1, seconds=60)
    project.answer("a", 2)
    project.answer("b", 1, seconds=180)
    project.answer("b", 2, seconds=240)
    time = project.metrics()["time_minutes"]
    assert time == {"mean": 3.0, "std": 1.0, "per_run": [2.0, 4.0], "answers_with_time": 3, "answers": 4}
    for path in project.answers.rglob("*.meta.json"):
        path.unlink()
    assert project.metrics()["time_minutes"] is None


def test_judges_served_models_and_rejections_are_counted(project: Project):
    usage = {"served_models": {"luna-1": 3}, "rejections": [{"check": "a", "url": None, "reason": "refusal"}] * 2}
    project.judged("a", 1, 1.0, judge_usage=usage)
    project.judged("b", 1, 1.0, judge_usage={"served_models": {"luna-1": 1, "luna-2": 2}, "rejections": []})
    project.judged("c", 1, 1.0, judge=None, judge_model="unknown", judge_usage=None)
    metrics = project.metrics()
    assert metrics["judge_models"] == ["gpt-6-luna", "unknown"]
    assert metrics["served_models"] == {"luna-1": 4, "luna-2": 2}
    assert metrics["rejected_requests"] == [{"task_id": "a", "run": 1, "requests": 2}]


def three_runs(project: Project, **more: Any) -> None:
    for run, score in enumerate((1.0, 0.0, 0.5), start=1):
        project.answer("a", run, "word " * 120, seconds=45)
        project.result("a", run, score, **more)


def test_leaderboard_entry_has_rounded_texts(project: Project):
    three_runs(project)
    entry = {"partial_completion": "0.50", "success_rate": "0.33", "pass3": "1.00", "time": "0.75"}
    entry["answer_length"] = "120"
    assert project.metrics(TaskInfo("a"), task_list="dev.csv")["leaderboard_entry"] == entry
    for path in project.answers.rglob("*.meta.json"):
        path.unlink()
    entry["time"] = "-"
    assert project.metrics(TaskInfo("a"), task_list="dev.csv")["leaderboard_entry"] == entry


def test_leaderboard_entry_needs_a_task_list_three_runs_and_one_known_judge(project: Project):
    three_runs(project)
    task = TaskInfo("a")
    assert project.metrics()["leaderboard_entry"] is None
    assert project.metrics(task, runs=2, task_list="dev.csv")["leaderboard_entry"] is None
    project.result("a", 2, 1.0, judge=JUDGE | {"reasoning_effort": "low"})
    assert project.metrics(task, task_list="dev.csv")["leaderboard_entry"] is None
    three_runs(project, judge=None)  # each request went to the model that the script named
    metrics = project.metrics(task, task_list="dev.csv")
    assert (metrics["judge_models"], metrics["leaderboard_entry"]) == (["gpt-6-luna"], None)


def test_command_prints_and_saves_the_metrics(project: Project, capsys):
    project.judged("a", 1, 1.0)
    saved = project.results / "me" / "metrics.json"
    assert main(["metrics", "me", "--no-save"]) == 0
    assert "Pass@1" in capsys.readouterr().out
    assert not saved.exists()
    assert main(["metrics", "me", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == json.loads(saved.read_text("utf-8"))
    assert "metrics.json" in shown.err
