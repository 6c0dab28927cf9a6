"""The main path end to end: real server process, real browser, a small site, and answers over HTTP.

Only the model (``lexical``) and the web (a site on loopback) are replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.patient_http import PatientTransport
from tests.fakes.processes import (
    command_line,
    descendants,
    is_running,
    left_after_a_while,
    processes_of,
)
from tests.fakes.program import environment_for, running_service
from tests.fakes.sandbox import sandbox_variables
from tests.fakes.warm_start import COLD
from tests.standin.web import Reply, StandInWeb, Visit

pytestmark = [pytest.mark.browser, pytest.mark.postgres]

JUDGE = """
from pydantic import BaseModel

from judges.registry import judge

TASK = "Name the river that flows through Vellmar and the year its old bridge was built, with sources."


@judge(task="bridge", description=TASK, version="1")
async def bridge(ctx):
    ctx.check("says_something", "Ahne" in ctx.answer.text, "The answer names the river", critical=True)
    site = SITE
    ctx.verify("river", "The river Ahne flows through Vellmar", sources=[f"{site}/river"], weight=2)
    facts = ctx.sequential("bridge", "The bridge")
    facts.verify("year", "The old bridge of Vellmar was built in 1764", sources=[f"{site}/late"])
    facts.verify("arches", "The old bridge of Vellmar has nine arches", sources=[f"{site}/late"])
    facts.verify("after", "The old bridge of Vellmar is red", sources=[f"{site}/late"])
    ctx.verify("gone", "The town has 18000 inhabitants", sources=[f"{site}/gone"])
"""

RIVER = """<html><head><title>River</title></head><body><h1>Rivers</h1><p>The river Ahne flows through Vellmar.</p>
<p>It is one of the many small rivers of the north, and people like to walk along its banks.</p></body></html>"""


class Site(StandInWeb):
    """Two pages: a static one, and one that waits for ``gate``."""

    def __init__(self) -> None:
        super().__init__({"/river": Reply.html(RIVER), "/slow": self._wait})
        self.asked, self.gate = threading.Event(), threading.Event()

    async def _wait(self, _: Visit) -> Reply:
        self.asked.set()
        await asyncio.to_thread(self.gate.wait, 600)
        return Reply.html(RIVER)


@pytest.fixture
def pages() -> Iterator[Site]:
    with entered_in_thread(site := Site()):
        yield site
        site.gate.set()


@pytest.fixture
def site(pages: Site) -> str:
    return pages.url("")


@pytest.fixture
def home(site: str, service_home: Path) -> Path:
    (service_home / "judges").mkdir()
    (service_home / "judges" / "bridge.py").write_text(JUDGE.replace("SITE", repr(site), 1))
    return service_home


@contextmanager
def assay(
    home: Path, site: str, *, program: Sequence[str] | None = COLD
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Run ``assay serve`` on any free port; yield the process and a client."""
    variables = {
        "ASSAY_JUDGES": str(home / "judges"),
        "ASSAY_EGRESS_ALLOW": site.removeprefix("http://"),
        **sandbox_variables(),
    }
    with (
        running_service(home, environment_for(home, **variables), "--workers", "1", program=program) as service,
        httpx.Client(base_url=service.url, timeout=240, trust_env=False, transport=PatientTransport()) as client,
    ):
        yield service.process, client


def submit(client: httpx.Client, text: str, task_id: str = "bridge") -> str:
    body = {"agent": "walker", "task_id": task_id, "answers": [{"name": "answer_1", "text": text}]}
    response = client.post("/v1/submissions", json=body)
    assert response.status_code == 202, response.text
    return str(response.json()["jobs"][0]["url"])


def ended(client: httpx.Client, url: str, within_s: float = 240.0) -> dict[str, Any]:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        job: dict[str, Any] = client.get(url).json()
        if job["finished_at"] is not None:
            return job
        time.sleep(0.1)
    raise AssertionError(f"the job has not ended: {job}")


def test_f3_kill_during_a_capture_leaves_no_process_and_captures_once_more(home: Path, pages: Site, site: str):
    with assay(home, site) as (process, client):
        url = submit(client, f"The Ahne, see {site}/slow")
        assert pages.asked.wait(240)
        offspring = {each: command_line(each) for each in descendants(process.pid)}
        browsers = [each for each in offspring if "--type=" in command_line(each)]
        assert browsers
        process.kill()
        process.wait()
    killed = time.monotonic()
    while left := [each for each in offspring if is_running(each) and "postgres" not in offspring[each]]:
        assert time.monotonic() - killed < 240, left
        time.sleep(0.1)
    assert corrupt_bodies(home) == []
    pages.gate.set()
    with assay(home, site, program=None) as (process, client):
        job = ended(client, url)
        assert (job["status"], job["attempts"]) == ("succeeded", 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(240) == 0
    assert pages.hits["/slow"] == 2
    assert left_after_a_while(lambda: processes_of(home)) == []


def corrupt_bodies(home: Path) -> list[Path]:
    """Return stored bodies whose hash differs from their name."""
    bodies = [
        path for path in (home / "data").rglob("*") if path.is_file() and re.fullmatch(r"[0-9a-f]{64}", path.name)
    ]
    return [path for path in bodies if hashlib.sha256(path.read_bytes()).hexdigest() != path.name]
