"""``assay demo`` for real: its own service, database and browser, the answers over HTTP, and every expected score."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.demo import EXPECTED
from app.summary import leaves

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.timeout(240)]

CASES = [(agent, task) for agent, tasks in EXPECTED.items() for task in tasks]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    folder.chmod(0o755)
    yield folder
    left = processes_of(folder)
    for process in left:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every living process that works in this folder or names it on its command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        place = [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
        if any(str(folder) in part for part in place) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", "demo", *arguments]


def environment() -> dict[str, str]:
    """Nothing of ours from outside, and no key of any provider."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OPENAI_"))}


@pytest.fixture(scope="module")
def first_run(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("--json"), cwd=home, env=environment(), capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture(scope="module")
def judged(first_run: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    assert first_run.returncode == 0, first_run.stderr
    answers = json.loads(first_run.stdout)["answers"]
    return {(one["agent_name"], one["task_id"]): one for one in answers}


def test_all_nine_answers_are_judged_and_it_says_so(
    first_run: subprocess.CompletedProcess[str], judged: dict[tuple[str, str], dict[str, Any]]
) -> None:
    assert sorted(judged) == sorted(CASES)
    assert "All scores are the expected ones" in first_run.stderr


@pytest.mark.parametrize(("agent", "task"), CASES)
def test_each_score_is_the_one_that_docs_explain(
    home: Path, judged: dict[tuple[str, str], dict[str, Any]], agent: str, task: str
) -> None:
    expected = EXPECTED[agent][task]
    answer = judged[agent, task]
    assert answer["score"]["low"] == pytest.approx(expected.low)
    assert answer["score"]["high"] == pytest.approx(expected.high)
    assert answer["status"] == ("incomplete" if expected.value is None else "complete")

    result = json.loads((home / answer["path"]).read_text())
    found = list(leaves(result))
    assert len(found) == expected.leaves
    missed = {leaf["id"]: (leaf["outcome"], leaf["reason"]) for leaf in found if leaf["outcome"] != "passed"}
    assert missed == dict(expected.missed)
    assert result["model"] == "lexical"


@pytest.mark.usefixtures("judged")
def test_nothing_it_started_is_left(home: Path) -> None:
    # The browser's watcher tidies up behind its owner and is gone a second or two later.
    until = time.monotonic() + 10
    while processes_of(home) and time.monotonic() < until:
        time.sleep(0.1)
    assert processes_of(home) == []


@pytest.mark.usefixtures("judged")
def test_a_second_run_uses_the_captured_pages_and_ends_with_a_scorecard(home: Path) -> None:
    again = subprocess.run(
        command(), cwd=home, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )

    assert again.returncode == 0, again.stderr
    rows = {cells[0]: cells[1:] for line in again.stdout.splitlines() if (cells := line.split())}
    assert rows["demo"][:4] == ["1.00", "1.00", "1.00", "0"]
    assert rows["demo-careless"][:4] == ["0.75-0.80", "0.00", "0.00", "1"]
    assert rows["demo-inventive"][:4] == ["0.12", "0.00", "0.00", "0"]
    paths = [line.strip() for line in again.stdout.splitlines() if line.strip().endswith(".md.json")]
    assert len(paths) == 9
    assert all((home / path).is_file() for path in paths)
    assert "/v1/results/res_" in again.stdout
    assert "browser_started" not in (home / "data" / "demo" / "serve.log").read_text()
    assert max(map(len, (line for line in again.stdout.splitlines() if "eval_results" not in line))) <= 80


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_demo_that_is_stopped_leaves_nothing_running(home: Path, number: signal.Signals) -> None:
    demo = subprocess.Popen(
        command(), cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if "submitting" in line:
            break
    demo.send_signal(number)

    assert demo.wait(60) == 130
    assert "stopped before it was done" in demo.stderr.read()
    demo.stderr.close()
    assert processes_of(home) == []
