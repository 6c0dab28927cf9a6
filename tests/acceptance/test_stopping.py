"""Shutdown of the real service: readiness, running jobs, leftover processes, and a second signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.patient_http import PatientTransport
from tests.fakes.prepared_database import prepare_database
from tests.fakes.processes import command_line, left_after_a_while, processes_of
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
START_S, BUSY_S = 240.0, 180.0


class Service:
    """``assay serve`` with a private database in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / f"log_{len(list(folder.glob('log_*')))}"
        environment = {
            **os.environ,
            "ASSAY_DATA_DIR": str(folder / "data"),
            "ASSAY_JUDGES": str(folder / "judges"),
            "ASSAY_MODEL": "lexical",
            "ASSAY_DATABASE_URL": "",
            "ASSAY_MAX_ANSWERS": str(JOBS),
        }
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(
                [*COLD, "serve", "--port", "0", "--workers", "1"],
                env=environment,
                stdout=output,
                stderr=output,
                cwd=folder,
            )
        try:
            self.http = httpx.Client(
                base_url=self._address(), timeout=240, trust_env=False, transport=PatientTransport()
            )
        except AssertionError:
            self.process.kill()
            self.process.wait()
            raise

    def _address(self) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            found = re.findall(r"http://127\.0\.0\.1:\d+", self._log.read_text())
            if found:
                return str(found[-1])
            assert self.process.poll() is None, self._log.read_text()
            time.sleep(0.05)
        raise AssertionError(self._log.read_text())

    def submit(self) -> list[str]:
        answers = [{"name": f"answer_{nth}", "text": f"Wait for {nth}."} for nth in range(JOBS)]
        response = self.http.post("/v1/submissions", json={"agent": "a", "task_id": "patience", "answers": answers})
        assert response.status_code == 202, response.text
        return [job["id"] for job in response.json()["jobs"]]

    def wait_until_stopping(self) -> httpx.Response:
        deadline = time.monotonic() + BUSY_S
        while (answer := self.http.get("/readyz")).status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return answer

    def until_all(self, status: str) -> list[dict[str, Any]]:
        deadline = time.monotonic() + BUSY_S
        while time.monotonic() < deadline:
            jobs: list[dict[str, Any]] = self.http.get("/v1/jobs").json()["items"]
            if all(job["status"] == status for job in jobs):
                return jobs
            time.sleep(0.1)
        raise AssertionError(json.dumps(jobs, indent=1))


@pytest.fixture
def folder(service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "patience.py").write_text(JUDGE)
    (service_home / "judges" / "gate.txt").write_text("")
    prepare_database(service_home)
    return service_home


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], Service]]:
    """Function that starts the service on one folder, any number of times."""
    with ExitStack() as stack:

        def started() -> Service:
            service = Service(folder)
            stack.callback(service.http.close)
            stack.callback(service.process.wait)
            stack.callback(service.process.kill)
            return service

        yield started


def open_gate(folder: Path) -> None:
    """Let the jobs finish."""
    (folder / "judges" / "gate.txt").write_text("open")


def test_stopping_service_is_not_ready_finishes_running_jobs_and_exits_with_0(
    folder: Path, start: Callable[[], Service]
):
    service = start()
    service.submit()
    service.until_all("running")
    assert service.http.get("/readyz").status_code == 200
    service.process.send_signal(signal.SIGTERM)
    answer = service.wait_until_stopping()
    assert answer.status_code == 503
    assert [check["name"] for check in answer.json()["checks"] if not check["ok"]] == ["stopping"]
    assert service.http.get("/v1/jobs").status_code == 200
    open_gate(folder)
    assert service.process.wait(240) == 0
    assert left_after_a_while(lambda: processes_of(folder)) == []

    again = start()
    jobs = again.until_all("succeeded")
    assert {(job["attempts"], job["error"]) for job in jobs} == {(1, None)}
    again.process.terminate()
    assert again.process.wait(240) == 0
    assert left_after_a_while(lambda: processes_of(folder)) == []


def test_second_signal_ends_the_service_at_once(folder: Path, start: Callable[[], Service]):
    service = start()
    service.submit()
    service.until_all("running")
    service.process.send_signal(signal.SIGTERM)
    service.wait_until_stopping()
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(240) == 143
    assert left_after_a_while(lambda: processes_of(folder)) == []


def test_restarted_service_reuses_its_database_and_resumes_jobs_after_a_kill(
    folder: Path, start: Callable[[], Service]
):
    """The private database survives the kill, is reused, and stops with the next normal stop."""
    service = start()
    service.submit()
    service.until_all("running")
    service.process.kill()
    service.process.wait(240)
    assert [process for process in processes_of(folder) if "postgres -D" in command_line(process)]
    again = start()
    open_gate(folder)
    jobs = again.until_all("succeeded")
    assert {job["attempts"] for job in jobs} <= {1, 2}
    again.process.terminate()
    assert again.process.wait(240) == 0
    assert left_after_a_while(lambda: processes_of(folder)) == []
