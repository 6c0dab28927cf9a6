"""The command line as a process: exit codes and output."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mind2web2.utils.cache_filesys import CacheFileSys
from tests.fakes.prepared_database import prepare_database
from tests.fakes.processes import left_after_a_while, processes_of
from tests.fakes.program import environment_for, run_command
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import warm_assay

JUDGE = """
from judges.registry import judge

@judge(task="bridge", description="When was the old bridge of Vellmar built?")
async def bridge(ctx):
    ctx.check("year", "1764" in ctx.answer.text, "The answer names the year", critical=True)
    ctx.verify("built", "The old bridge of Vellmar was built in 1764", sources=["https://towns.example/vellmar"])
"""
ANSWER = "It was built in 1764, says [the town](https://towns.example/vellmar)."


@pytest.fixture
def home(service_home: Path) -> Iterator[Path]:
    """Folder with a judge and two answers, readable for the database account. No process in it may outlive the test."""
    (service_home / "judges.d").mkdir()
    (service_home / "judges.d" / "bridge.py").write_text(JUDGE)
    answers = service_home / "answers" / "otter" / "bridge"
    answers.mkdir(parents=True)
    (answers / "answer_1.md").write_text(ANSWER)
    (answers / "answer_2.md").write_text("In 1800, nobody says so.")
    yield service_home
    left = left_after_a_while(lambda: processes_of(service_home))
    assert left == []


def environment(home: Path, **more: str) -> dict[str, str]:
    return environment_for(home, **{"ASSAY_JUDGES": str(home / "judges.d"), **sandbox_variables(), **more})


def assay(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_command(home, environment(home, **more), *arguments)


def store_page(home: Path, text: str) -> None:
    cache = CacheFileSys(home / "cache" / "otter" / "bridge")
    cache.put_web("https://towns.example/vellmar", text, None)
    cache.save()


def test_evaluate_judges_a_folder_and_prints_one_json_document(home: Path) -> None:
    store_page(home, "The old bridge of Vellmar was built in 1764.")

    ended = assay(home, "evaluate", "--agent", "otter", "--cache", "cache", "--json")

    assert ended.returncode == 0, ended.stderr
    output = json.loads(ended.stdout)
    assert [(answer["answer_name"], answer["score"]["value"]) for answer in output["answers"]] == [
        ("answer_1.md", 1.0),
        ("answer_2.md", 0.0),
    ]
    summary = json.loads((home / "eval_results" / "otter" / "summary.json").read_text())
    assert (summary["avg_score"], summary["num_runs"], summary["pass_at_2"]) == (0.5, 2, 1.0)
    assert output["summary"] == summary
    results = home / "eval_results" / "otter" / "bridge" / "answer_1" / "results"
    (result,) = results.iterdir()
    assert re.fullmatch(r"\d{8}_\d{6}_answer_1\.md\.json", result.name)
    assert "answer_1.md  judged  1.00" in ended.stderr


@pytest.mark.browser
def test_evaluate_exits_with_3_if_an_answer_could_not_be_judged(home: Path) -> None:
    (home / "judges.d" / "bridge.py").write_text(JUDGE + "\n    raise KeyError('my own bug')\n")

    ended = assay(home, "evaluate", "--agent", "otter")

    assert ended.returncode == 3
    assert "JUDGE_BUG" in ended.stdout
    assert "my own bug" in ended.stderr
    assert not list((home / "eval_results").rglob("results"))
    assert "my own bug" in (home / "eval_results" / "otter" / "bridge" / "answer_1" / "failed.json").read_text()


def test_generated_task_passes_its_test_unchanged(home: Path) -> None:
    written = assay(home, "tasks", "new", "old_light", "--out", "judges.d")
    command = next(line for line in written.stderr.splitlines() if "assay tasks test" in line)

    tested = assay(home, *command.partition("assay ")[2].split())

    assert tested.returncode == 0, tested.stdout + tested.stderr


@contextmanager
def running(home: Path, *arguments: str, says: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a long-lived command; yield the process and the first group of ``says`` in its log."""
    log = home / f"{arguments[0]}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [warm_assay(), *arguments],
            cwd=home,
            env=environment(home),
            stdout=output,
            stderr=output,
            text=True,
        )
    try:
        yield process, logged(process, log, says)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(240)


def logged(process: subprocess.Popen[str], log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"it did not start:\n{log.read_text()}")


def serving(home: Path, workers: int) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """Run ``assay serve`` on any free port; yield the process and its URL."""
    prepare_database(home)
    arguments = ("serve", "--port", "0", "--workers", str(workers))
    return running(home, *arguments, says=r"assay serves at (http://[\d.:]+):")


@pytest.fixture
def no_pages(home: Path) -> None:
    """Replace the judge by one that needs no page, so that no browser is needed."""
    lines = [line for line in JUDGE.splitlines() if "sources=" not in line]
    (home / "judges.d" / "bridge.py").write_text("\n".join(lines))
    for path in (home / "answers" / "otter" / "bridge").iterdir():
        path.write_text(path.read_text().replace("https://towns.example/vellmar", "the town hall"))


@pytest.mark.postgres
@pytest.mark.usefixtures("no_pages")
def test_submit_waits_for_scores_of_a_running_server(home: Path) -> None:
    answers = str(home / "answers" / "otter" / "bridge")
    named = ("--agent", "otter", "--task", "bridge")
    with serving(home, workers=1) as (server, url):
        judged = assay(home, "submit", answers, *named, "--url", url, "--wait", "--json")
        assert judged.returncode == 0, judged.stderr
        output = json.loads(judged.stdout)
        assert [result["score"]["value"] for result in output["results"]] == [1.0, 0.0]

        unknown = assay(home, "submit", answers, "--agent", "otter", "--task", "brige", "--url", url)
        assert unknown.returncode == 2
        assert "Did you mean: bridge?" in unknown.stderr

        check_lists(home, url, output)
        check_providers(home, url)
        rescored = assay(home, "results", "rescore", "--task", "bridge", "--url", url)
        assert rescored.returncode == 0, rescored.stderr
        assert " 0 leaves flipped, 0 calls" in rescored.stdout
        taken = assay(home, "serve", "--port", url.rpartition(":")[2])
        assert taken.returncode == 1
        assert "--port" in taken.stderr

        server.send_signal(signal.SIGTERM)
        assert server.wait(240) == 0


def check_providers(home: Path, url: str) -> None:
    assert (
        assay(home, "admin", "providers", "--pause", "azure", "--reason", "a test", "--url", url).stdout
        == "azure is paused\n"
    )
    listed = assay(home, "admin", "providers", "--url", url).stdout
    assert re.search(r"^ *azure +paused +local .* a test *$", listed, re.MULTILINE), listed
    assert assay(home, "admin", "providers", "--resume", "azure", "--url", url).stdout == "azure is in use\n"


def check_lists(home: Path, url: str, output: dict[str, Any]) -> None:
    jobs = json.loads(assay(home, "admin", "jobs", "--url", url, "--json").stdout)["items"]
    assert {job["id"] for job in jobs} == {job["id"] for job in output["jobs"]}
    results = json.loads(assay(home, "results", "show", "--agent", "otter", "--url", url, "--json").stdout)["items"]
    assert {result["id"] for result in results} == {result["id"] for result in output["results"]}


@pytest.mark.postgres
@pytest.mark.browser
def test_doctor_checks_browser_and_database_and_leaves_no_files(home: Path) -> None:
    ended = assay(home, "admin", "doctor", "--json")

    assert ended.returncode == 0, ended.stdout
    checks = {check["name"]: check for check in json.loads(ended.stdout)["checks"]}
    assert set(checks) == {"program", "browser", "database", "keys", "model", "judges", "isolation", "disk", "access"}
    assert "a page took" in checks["browser"]["detail"] or checks["browser"]["state"] == "warning"
    assert "PostgreSQL" in checks["database"]["detail"]
    assert "lexical: built in" in checks["model"]["detail"]
    assert not (home / "data").exists()
