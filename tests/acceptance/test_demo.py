"""``assay demo`` with its own service, database and browser, and the outcome of every leaf.

The site's port is part of the shipped answers, so only one test process at a time may run this module.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.demo.expected import EXPECTED, EXPECTED_CHECK, page_texts
from app.demo.site import PORT
from rubrics.tree_json import leaves_of
from tests.acceptance.demo_leaves import LEAVES, MISSED
from tests.fakes.folders import service_folder
from tests.fakes.processes import kill_processes_of, left_after_a_while, processes_of
from tests.fakes.program import clean_environment

pytestmark = [
    pytest.mark.browser, pytest.mark.postgres, pytest.mark.timeout(900), pytest.mark.usefixtures("demo_port"),
]  # fmt: skip

CASES = [(agent, task) for agent, tasks in EXPECTED.items() for task in tasks]
Results = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = service_folder("assay-demo-")
    yield folder
    kill_processes_of(folder)
    shutil.rmtree(folder, ignore_errors=True)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", "demo", *arguments]


@pytest.fixture(scope="module")
def first_run(home: Path) -> subprocess.CompletedProcess[str]:
    places = {"HOME": home / "home", "TMPDIR": home / "temporary"}
    for folder in places.values():
        folder.mkdir(mode=0o755)
    env = clean_environment(**{name: str(folder) for name, folder in places.items()})
    return subprocess.run(
        command("--json"), cwd=home, env=env, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def results(home: Path, first_run: subprocess.CompletedProcess[str]) -> Results:
    """All results by agent and task."""
    assert first_run.returncode == 0, first_run.stderr
    answers = json.loads(first_run.stdout)["answers"]
    return {(answer["agent"], answer["task_id"]): json.loads((home / answer["path"]).read_text()) for answer in answers}


def leaves_by_id(result: dict[str, Any]) -> dict[str, Any]:
    return {leaf["id"]: leaf for leaf in leaves_of(result)}


def test_all_nine_answers_are_judged_and_reported_as_expected(
    first_run: subprocess.CompletedProcess[str], results: Results
):
    assert sorted(results) == sorted(CASES)
    assert "All scores are as expected" in first_run.stderr
    check = json.loads(first_run.stdout)["check"]
    assert (check["baseline"], check["model"], check["counts"]) == (True, "lexical", dict(EXPECTED_CHECK))


def test_scores_and_leaves_are_as_documented(results: Results):
    for agent, task in CASES:
        expected, result = EXPECTED[agent][task], results[agent, task]
        bounds = {"low": pytest.approx(expected.low), "high": pytest.approx(expected.high)}
        value = None if expected.value is None else pytest.approx(expected.value)
        assert result["score"] == {"value": value, **bounds}
        assert result["final_score"] == pytest.approx(expected.low)
        assert result["status"] == ("incomplete" if expected.value is None else "complete")
        found = leaves_by_id(result)
        assert len(found) == LEAVES[task]
        missed = {id: (leaf["outcome"], leaf["reason"]) for id, leaf in found.items() if leaf["outcome"] != "passed"}
        assert missed == MISSED[agent][task]
        # The strict score equals the score, so every supported verdict is grounded.
        assert result["score_strict"] == result["score"]
        assert all(leaf["quotes"] for leaf in found.values() if leaf["outcome"] == "passed" and leaf["sources"])


def test_quotes_include_text_that_needs_a_browser(results: Results):
    for task, leaf, quote in (
        ("velm_directors", "lecture/speaker", "Henrik Aldous gives the autumn lecture on 14 November 2025"),
        ("pellard_gauges", "gauges/heron_2/price", "The Heron 2 costs 1,350 crowns"),
        ("karrow_visit", "talk/speaker", "Speaker: Noor Castellane"),
        ("karrow_visit", "museum/opens", "From Tuesday to Saturday it is open from 10:00 to 17:00"),
        ("karrow_visit", "ferry/arrives", "Saturday | 8:40 | 9:25"),
    ):
        (found, *_) = leaves_by_id(results["demo", task])[leaf]["quotes"]
        assert quote in found["text"]


def test_shipped_page_texts_equal_the_captured_texts(results: Results):
    """Runs without a browser, such as `assay tasks test`, use the shipped texts."""
    shipped = {
        url.partition(f":{PORT}")[2]: hashlib.sha256(text.encode()).hexdigest() for url, text in page_texts().items()
    }
    seen = {
        urlsplit(page["url"]).path: page["bodies"]["text"]
        for result in results.values()
        for page in result["pages"]
        if page["outcome"] == "ok"
    }
    assert seen == shipped


def captured_usable_pages(home: Path) -> list[str]:
    """Return the URLs of the usable pages that the last run captured."""
    lines = (home / "data" / "demo" / "serve.log").read_text().splitlines()
    events = [json.loads(line) for line in lines if '"page captured"' in line]
    return [event["url"] for event in events if event["outcome"] == "ok"]


@pytest.mark.usefixtures("results")
def test_second_run_uses_captured_pages_and_prints_a_scorecard(home: Path) -> None:
    assert captured_usable_pages(home) != []
    again = subprocess.run(
        command(), cwd=home, env=clean_environment(), capture_output=True, text=True, timeout=600, check=False
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
    assert "BASELINE check of the citations of report.md" in again.stdout
    # Failed captures are repeated after a minute, so on a busy machine the second run may repeat them.
    assert captured_usable_pages(home) == []
    assert max(map(len, (line for line in again.stdout.splitlines() if "eval_results" not in line))) <= 80


@pytest.mark.usefixtures("results")
def test_interrupted_demo_leaves_no_processes(home: Path) -> None:
    demo = subprocess.Popen(
        command(), cwd=home, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if "submitting" in line:
            break
    demo.send_signal(signal.SIGINT)

    assert demo.wait(240) == 128 + signal.SIGINT
    assert demo.stderr.read().splitlines()[-1] == "Interrupted"
    demo.stderr.close()
    assert left_after_a_while(lambda: processes_of(home)) == []
