"""The topology of ``docker-compose.yml`` without containers: one API, three workers, PostgreSQL, and an S3 server.

The workers share only the database and the bucket; each has its own data directory. One is killed, one is stopped
past its lease and continued.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.patient_http import PatientTransport
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import COLD, warm_assay
from tests.integration.app.conftest import database_url, postgres_url
from tests.standin.llm import StandInLLM
from tests.standin.s3 import moto_server
from tests.standin.web import Reply, StandInWeb

__all__ = ["database_url", "postgres_url"]

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.timeout(600)]

JOBS, CLAIMS, VOTES = 8, 4, 2
PAGE = (
    "<html><body><h1>Tower</h1><p>The tower of Halm is sixty metres high and was built by Ina Roth.</p></body></html>"
)
JUDGE = f"""
from judges.registry import judge

@judge(task="tower", description="Tell of the tower.")
async def tower(ctx):
    page, name = ctx.answer.text.split("(")[1].split(")")[0], ctx.answer.name
    for number in range({CLAIMS}):
        sources = None if number else [page]
        ctx.verify(f"claim_{{number}}", f"The tower of {{name}} is claim {{number}}", sources=sources)
"""
WAIT_S = 240.0
LISTENERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN %'"


@pytest.fixture
def site() -> Iterator[str]:
    with entered_in_thread(server := StandInWeb(default_answer=Reply.html(PAGE))):
        yield server.url("")


@pytest.fixture
def model() -> Iterator[StandInLLM]:
    """Stand-in model in a separate thread, because the test blocks."""
    with entered_in_thread(server := StandInLLM(delay_s=0.3)):
        yield server


@pytest.fixture
def bucket() -> Iterator[str]:
    with moto_server() as endpoint:
        httpx.put(f"{endpoint}/evidence", trust_env=False).raise_for_status()
        yield endpoint


class Machines:
    """Processes with the settings of one deployment."""

    def __init__(self, folder: Path, stack: ExitStack, **settings: str) -> None:
        self._folder = folder
        self._stack = stack
        self._settings = settings

    def start(self, name: str, *command: str, program: Sequence[str] | None = None) -> subprocess.Popen[bytes]:
        home = self._folder / name
        home.mkdir()
        environment = {**os.environ, **sandbox_variables(), **self._settings, "ASSAY_DATA_DIR": str(home / "data")}
        with (home / "log").open("wb") as output:
            process = subprocess.Popen(
                [*(program or [warm_assay()]), *command], env=environment, stdout=output, stderr=output, cwd=home
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def wait_for_log(self, name: str, pattern: str) -> str:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if found := re.search(pattern, (self._folder / name / "log").read_text()):
                return found[0]
            time.sleep(0.1)
        raise AssertionError((self._folder / name / "log").read_text())


def until(connection: psycopg.Connection[Any], query: str, *, least: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        row = connection.execute(query).fetchone()
        if row is not None and row[0] is not None and row[0] >= least:
            return
        time.sleep(0.1)
    raise AssertionError(connection.execute("SELECT id, status, stage, error, attempts FROM jobs").fetchall())


def test_each_job_has_one_correct_result_after_a_kill_and_a_stopped_worker(
    database_url: str, site: str, model: StandInLLM, bucket: str, tmp_path: Path
):
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "tower.py").write_text(JUDGE)
    with ExitStack() as stack:
        machines = Machines(
            tmp_path,
            stack,
            ASSAY_DATABASE_URL=database_url,
            ASSAY_BLOBS="s3://evidence/pages",
            AWS_ENDPOINT_URL=bucket,
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_REGION="us-east-1",
            ASSAY_JUDGES=str(tmp_path / "judges"),
            ASSAY_MODEL="openai/gpt-6-luna",
            OPENAI_BASE_URL=model.base_url,
            ASSAY_MAX_LLM="2",
            ASSAY_STALLED_S="3",
            ASSAY_MAX_ATTEMPTS="10",  # on a busy machine, workers that live can look lost
            ASSAY_EGRESS_ALLOW=site.removeprefix("http://"),
        )
        machines.start("api", "serve", "--port", "0", "--workers", "0")
        programs = {"first": COLD, "second": COLD, "third": None}  # the first two are killed and stopped
        command = ("serve", "--worker-only", "--jobs", "2")
        workers = [machines.start(name, *command, program=each) for name, each in programs.items()]
        for name in programs:
            machines.wait_for_log(name, "worker is ready: 2 concurrent job")
        api = httpx.Client(
            base_url=machines.wait_for_log("api", r"http://127\.0\.0\.1:\d+"),
            timeout=240,
            trust_env=False,
            transport=PatientTransport(),
        )
        connection = stack.enter_context(psycopg.connect(database_url, autocommit=True))
        stack.callback(api.close)
        # PostgreSQL wakes each listening process for every change of a job, so workers do not listen.
        until(connection, LISTENERS, least=1)
        assert connection.execute(LISTENERS).fetchone() == (1,)

        text = f"It is high, see [the page]({site}/tower)."
        answers = [{"name": f"answer_{nth}", "text": f"{text} Said {nth} times."} for nth in range(JOBS)]
        sent = api.post("/v1/submissions", json={"agent": "a", "task_id": "tower", "answers": answers})
        assert sent.status_code == 202, sent.text
        until(connection, "SELECT count(*) FROM captures", least=1)
        until(connection, "SELECT count(*) FROM checkpoints", least=4)
        workers[0].kill()
        workers[1].send_signal(signal.SIGSTOP)
        until(connection, "SELECT count(*) FROM jobs WHERE attempts >= 2", least=2)
        workers[1].send_signal(signal.SIGCONT)
        until(connection, "SELECT count(*) FROM jobs WHERE status NOT IN ('queued', 'running')", least=JOBS)
        for process in workers[1:]:  # afterwards, the worker that was stopped writes nothing any more
            process.terminate()
        assert [process.wait(240) for process in workers[1:]] == [0, 0]
        jobs = api.get("/v1/jobs").json()["items"]
        assert {job["status"] for job in jobs} == {"succeeded"}, jobs
        results = [api.get(f"/v1/results/{job['result_id']}").json() for job in jobs]
        assert {(found["status"], found["score"]["value"]) for found in results} == {("complete", 1.0)}
        # Replies that arrived too late for the stopped worker's job are in the shared reply cache, where the next
        # worker finds them.
        assert {found["usage"]["calls"] + found["usage"]["cached_calls"] for found in results} == {CLAIMS * VOTES}
        once = "SELECT count(*), count(DISTINCT job_id) FROM results"
        assert connection.execute(once).fetchone() == (JOBS, JOBS)
        # An attempt that was taken over had at most two requests in progress, and two whose replies were not stored.
        [lost] = connection.execute("SELECT sum(attempts) - count(*) FROM jobs").fetchone() or (0,)
        assert lost >= 2
        assert len(model.calls) <= JOBS * CLAIMS * VOTES + 4 * lost

        pages = {page["page_id"] for found in results for page in found["pages"]}
        assert len(pages) == 1  # one worker captured the page for all
        shown = api.get(f"/v1/pages/{pages.pop()}/text")
        assert "sixty metres" in shown.text
