"""Shutdown of the real service: readiness, running jobs, leftover processes, and a second signal."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.patient_http import PatientTransport
from tests.fakes.processes import command_line, left_after_a_while, processes_of
from tests.fakes.program import RunningService, environment_for, running_service
from tests.fakes.warm_start import COLD

pytestmark = pytest.mark.postgres

JOBS = 5
JUDGE = """
import asyncio
from pathlib import Path

from judges.registry import judge

@judge(task="patience", description="Wait.")
async def patience(ctx):
    while not Path(__file__).with_name("gate.txt").read_text():
        await asyncio.sleep(0.05)
    ctx.check("waited", True)
"""


@pytest.fixture
def folder(service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "patience.py").write_text(JUDGE)
    (service_home / "judges" / "gate.txt").write_text("")
    return service_home


@contextmanager
def serving(folder: Path) -> Iterator[tuple[RunningService, httpx.Client]]:
    environment = environment_for(folder, ASSAY_JUDGES=str(folder / "judges"), ASSAY_MAX_ANSWERS=str(JOBS))
    with (
        running_service(folder, environment, "--workers", "1", program=COLD) as service,
        httpx.Client(base_url=service.url, timeout=240, trust_env=False, transport=PatientTransport()) as http,
    ):
        yield service, http


def start_jobs(http: httpx.Client) -> None:
    answers = [{"name": f"answer_{nth}", "text": f"Wait for {nth}."} for nth in range(JOBS)]
    body = {"agent": "a", "task_id": "patience", "answers": answers}
    http.post("/v1/submissions", json=body).raise_for_status()
    until_all(http, "running")


def until_all(http: httpx.Client, status: str) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 180
    while True:
        jobs: list[dict[str, Any]] = http.get("/v1/jobs").json()["items"]
        if all(job["status"] == status for job in jobs):
            return jobs
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)


def stop(service: RunningService, http: httpx.Client) -> httpx.Response:
    """Send SIGTERM, and return the first answer that says that the service is not ready."""
    assert http.get("/readyz").status_code == 200
    service.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 180
    while (answer := http.get("/readyz")).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer


def open_gate(folder: Path) -> None:
    """Let the jobs finish."""
    (folder / "judges" / "gate.txt").write_text("open")


def test_stopping_service_is_not_ready_and_finishes_running_jobs_unless_it_gets_a_second_signal(folder: Path):
    with serving(folder) as (service, http):
        start_jobs(http)
        stop(service, http)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(240) == 143
    assert left_after_a_while(lambda: processes_of(folder)) == []
    with serving(folder) as (service, http):
        until_all(http, "running")
        answer = stop(service, http)
        assert answer.status_code == 503
        assert [check["name"] for check in answer.json()["checks"] if not check["ok"]] == ["stopping"]
        assert http.get("/v1/jobs").status_code == 200
        open_gate(folder)
        assert service.process.wait(240) == 0
    assert left_after_a_while(lambda: processes_of(folder)) == []


def test_restarted_service_reuses_its_database_and_resumes_jobs_after_a_kill(folder: Path):
    """The private database survives the kill, is reused, and stops with the next normal stop."""
    with serving(folder) as (service, http):
        start_jobs(http)
        service.process.kill()
        service.process.wait(240)
    assert [process for process in processes_of(folder) if "postgres -D" in command_line(process)]
    with serving(folder) as (service, http):
        open_gate(folder)
        jobs = until_all(http, "succeeded")
        assert {job["attempts"] for job in jobs} <= {1, 2}
        service.process.terminate()
        assert service.process.wait(240) == 0
    assert left_after_a_while(lambda: processes_of(folder)) == []
