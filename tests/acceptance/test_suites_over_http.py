"""Both step suites end to end: real server process, stand-in model, and runs started over HTTP.

The server is killed during a run. Requests that were already paid for are not repeated.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.multimodal import EXPECTED, STEPS, multimodal_reply, write_rows
from tests.fakes.patient_http import AsyncPatientTransport
from tests.fakes.prepared_database import prepare_database
from tests.fakes.program import environment_for
from tests.fakes.warm_start import COLD, warm_assay
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres


@pytest.fixture
def home(service_home: Path) -> Path:
    (service_home / "benchmarks").mkdir()
    prepare_database(service_home)
    return service_home


@asynccontextmanager
async def serving(
    home: Path, model: StandInLLM, *, program: Sequence[str] = ()
) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    """Run ``assay serve`` with one model request at a time; yield the process and a client. ``program``: ``COLD`` for
    a process that is killed."""
    environment = environment_for(
        home,
        ASSAY_SUITE_DATA=str(home / "benchmarks"),
        ASSAY_MODEL="openai/gpt-4o",
        ASSAY_MAX_LLM="1",
        OPENAI_API_KEY="key-of-the-tests",
        OPENAI_BASE_URL=model.base_url,
    )
    log = home / "log"
    written = log.stat().st_size if log.exists() else 0
    with log.open("a") as stderr:
        command = [*(program or [warm_assay()]), "serve", "--port", "0", "--workers", "1"]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=home, stderr=stderr, stdout=stderr
        )
    try:
        async with asyncio.timeout(240):
            while not (said := re.findall(r"assay serves at (http://\S+?):? ", log.read_text()[written:])):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.05)
        async with httpx.AsyncClient(
            base_url=said[-1], timeout=240, trust_env=False, transport=AsyncPatientTransport()
        ) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def start_run(client: httpx.AsyncClient, suite: str, **order: Any) -> str:
    response = await client.post(f"/v1/suites/{suite}/runs", json=order)
    assert response.status_code == 202, response.text
    return str(response.json()["url"])


async def finished(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Wait until a run has ended, and return its result."""
    async with asyncio.timeout(240):
        while (run := (await client.get(url)).raise_for_status().json())["finished_at"] is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert run["status"] == "succeeded", run
    result: dict[str, Any] = (await client.get(f"/v1/results/{run['result_id']}")).json()
    return result | {"attempts": run["attempts"]}


async def test_killed_run_continues_without_paying_twice(home: Path):
    source = write_rows(home / "test_website.parquet", STEPS)
    build_snapshot(
        source, home / "benchmarks/snapshot.parquet", SamplingOptions(distractors=3), split=None, watch=lambda _: None
    )
    async with StandInLLM() as model:
        model.fault_for = lambda call: multimodal_reply(call) if call.index < 5 else Fault(delay_s=600.0)
        async with serving(home, model, program=COLD) as (process, client):
            url = await start_run(client, "mm-mind2web", data="snapshot.parquet")
            async with asyncio.timeout(240):
                while len(model.calls) < 6:  # noqa: ASYNC110 - the model is another server
                    await asyncio.sleep(0.02)
            process.kill()
            await process.wait()
        model.fault_for = multimodal_reply
        async with serving(home, model) as (process, client):
            result = await finished(client, url)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    assert {name: result[name] for name in EXPECTED} == pytest.approx(EXPECTED)
    assert result["attempts"] == 2
    # Two requests for each of five steps. The request in progress during the kill is sent again.
    assert len(model.calls) == 11
