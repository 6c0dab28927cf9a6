"""Responses while the database is down or its disk is full, and recovery afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import text

from app.server.application import create_app
from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.folders import service_folder
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import assert_problem, running_app, submission_body, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres


@pytest.fixture
def database_url(fresh_database_url: str) -> str:
    """Database of the test's own: some tests change its schema."""
    return fresh_database_url


TRIED = "CREATE SEQUENCE tried"
FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  PERFORM nextval('tried');
  RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$
"""


async def run(database: Database, *statements: str) -> None:
    async with database.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def was_tried(database: Database) -> bool:
    async with database.begin() as connection:
        return bool((await connection.execute(text("SELECT is_called FROM tried"))).scalar_one())


async def test_submissions_are_refused_and_jobs_wait_while_the_disk_of_the_database_is_full(
    open_api: OpenApi, database: Database
):
    await run(database, TRIED, FULL, "CREATE TRIGGER no_room BEFORE INSERT ON jobs EXECUTE FUNCTION no_room()")
    async with open_api(evaluate=ScriptedEvaluation()) as api:
        for headers in ({}, {"Idempotency-Key": "1"}):
            response = await api.post("/v1/submissions", json=submission_body(), headers=headers)
            assert "disk of the database is full" in assert_problem(response, 507, "STORAGE_FULL")["detail"]
            assert int(response.headers["retry-after"]) > 0
        await run(
            database,
            "DROP TRIGGER no_room ON jobs",
            "ALTER SEQUENCE tried RESTART",
            "CREATE TRIGGER no_room BEFORE INSERT ON results EXECUTE FUNCTION no_room()",
        )
        [job_id] = await submit(api)
        while not await was_tried(database):  # noqa: ASYNC110 - the state is in the database
            await asyncio.sleep(0.02)
        job = (await api.get(f"/v1/jobs/{job_id}")).json()
        assert job["status"] in ("queued", "running")
        await run(database, "DROP TRIGGER no_room ON results")
        assert (await wait_for_job(api, job_id))["status"] == "succeeded"


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """Database server of this test, which the test may kill."""
    folder = service_folder("assay-test-")
    server = EmbeddedPostgres(folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def api(server: EmbeddedPostgres, judges: Path, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    chosen = settings_for_tests(data_dir=tmp_path / "data", database_url=server.url())
    app = create_app(chosen, workers=0, runtime=scripted_runtime(judges), evaluate=ScriptedEvaluation())
    async with running_app(app) as client:
        yield client


def crash(server: EmbeddedPostgres) -> None:
    """Kill the server and its child processes with SIGKILL."""
    postmaster = psutil.Process(int((server._pgdata / "postmaster.pid").read_text().splitlines()[0]))
    for process in [*postmaster.children(recursive=True), postmaster]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


async def test_requests_return_503_while_database_is_down(api: httpx.AsyncClient, server: EmbeddedPostgres):
    [job_id] = await submit(api)
    await asyncio.gather(*(api.get(f"/v1/jobs/{job_id}") for _ in range(8)))  # opens some pooled connections
    crash(server)
    for _ in range(3):
        for method, path in (("GET", f"/v1/jobs/{job_id}"), ("GET", "/v1/jobs"), ("POST", "/v1/submissions")):
            response = await api.request(method, path, json=submission_body() if method == "POST" else None)
            assert_problem(response, 503, "UNAVAILABLE")
            assert response.headers["retry-after"] == "2"
        ready = await api.get("/readyz")
        assert (ready.status_code, ready.json()["checks"][0]["ok"]) == (503, False)
        assert ready.json()["checks"][0]["detail"] == "The database is unavailable"
        assert (await api.get("/healthz")).status_code == 200
    await asyncio.to_thread(EmbeddedPostgres(server._data_dir).start)
    async with asyncio.timeout(240):
        while (await api.get(f"/v1/jobs/{job_id}")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert (await api.post("/v1/submissions", json=submission_body())).status_code == 202
    assert len((await api.get("/v1/jobs")).json()["items"]) == 2
