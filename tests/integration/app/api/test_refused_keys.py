"""Rejected provider keys: one request, paused jobs, and completion after the key is corrected. The model is a stand-in
server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from app.server.application import create_app
from app.storage.database import Database
from tests.fakes.llm import patient_circuits  # noqa: F401 - fixture
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app, submit, wait_for_job, wait_until_paused
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("patient_circuits")]

FRANCE = {"https://example.org/france": "Paris is the capital of France."}
JOBS = 4
ANSWERS = [
    {"name": f"answer_{nth}", "text": f"It is Paris, for the {nth}th time (https://example.org/france)."}
    for nth in range(JOBS)
]

Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(api_key="key-b") as server:
        yield server


@pytest.fixture
def serve(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Iterator[Serve]:
    """Return a factory that starts the service with a key. All instances share the database and the disk."""

    @asynccontextmanager
    async def started(key: str) -> AsyncIterator[httpx.AsyncClient]:
        settings = settings_for_tests(
            data_dir=tmp_path,
            database_url=database_url,
            model="openai/gpt-6-luna",
            openai_api_key=key,
            openai_base_url=model.base_url,
        )
        app = create_app(settings, runtime=scripted_runtime(judges, FRANCE, data_folder=tmp_path / "kept"))
        async with running_app(app) as client:
            yield client

    yield started


@pytest.mark.parametrize("lists_models", [True, False])
async def test_invalid_key_costs_one_request_and_jobs_finish_with_a_valid_one(
    serve: Serve, model: StandInLLM, database: Database, lists_models: bool
):
    model.models = [] if lists_models else None
    async with serve("key-a") as api:
        job_ids = await submit(api, answers=ANSWERS)
        paused = await wait_until_paused(api, job_ids)
    async with database.begin() as connection:
        captured = (await connection.execute(text("SELECT count(*) FROM captures"))).scalar_one()
    assert captured == (0 if lists_models else 1)  # a server with a list rejects the key before pages are captured
    assert {(job["status"], job["attempts"], job["error"]["code"]) for job in paused} == {("queued", 0, "LLM_REJECTED")}
    assert all("the key is wrong or revoked" in job["error"]["detail"] for job in paused)
    async with serve("key-b") as api:
        done = [await wait_for_job(api, job_id) for job_id in job_ids]
        results = [(await api.get(f"/v1/results/{job['result_id']}")).json() for job in done]
    assert {(job["status"], job["attempts"], job["error"]) for job in done} == {("succeeded", 1, None)}
    assert {result["status"] for result in results} == {"complete"}
    assert len([call for call in model.calls if call.api_key == "key-a"]) == 1
    assert sum(result["usage"]["calls"] for result in results) == len(model.calls) - 1
