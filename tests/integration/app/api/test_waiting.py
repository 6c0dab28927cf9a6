"""Long polling with ``wait``."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.api.api_calls import assert_problem, submission_body
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("kind", ["jobs", "submissions"])
async def test_request_waits_until_the_job_has_ended(open_api: OpenApi, kind: str):
    evaluation = ScriptedEvaluation(gate=(gate := asyncio.Event()))
    async with open_api(evaluate=evaluation) as api:
        submission = (await api.post("/v1/submissions", json=submission_body())).json()
        path = f"/v1/jobs/{submission['jobs'][0]['id']}" if kind == "jobs" else f"/v1/submissions/{submission['id']}"
        await evaluation.running.wait()
        waiting = asyncio.create_task(api.get(path, params={"wait": 60}))
        _, unfinished = await asyncio.wait({waiting}, timeout=0.3)
        assert unfinished == {waiting}
        gate.set()
        read = (await waiting).json()
    assert (read if kind == "jobs" else read["jobs"][0])["status"] == "succeeded"


async def test_invalid_wait_returns_422(api: httpx.AsyncClient):
    for wait in ("-1", "61", "nan"):
        read = assert_problem(await api.get("/v1/jobs/job_unknown", params={"wait": wait}), 422, "INVALID")
        assert [error["path"] for error in read["errors"]] == ["wait"]


def test_waiting_requests_are_limited_and_end_when_the_client_disconnects(
    database_url: str, judges: Path, tmp_path: Path
):
    chosen = settings_for_tests(data_dir=tmp_path / "data", database_url=database_url, max_streams=1)
    app = create_app(chosen, workers=0, runtime=scripted_runtime(judges))
    with served(app) as url, httpx.Client(base_url=url, timeout=30) as api:
        job_id = api.post("/v1/submissions", json=submission_body()).json()["jobs"][0]["id"]
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET /v1/jobs/{job_id}?wait=60 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            while not app.state.service.events.followers:
                api.get("/healthz")
            assert_problem(api.get(f"/v1/jobs/{job_id}", params={"wait": 1}), 429, "TOO_MANY_STREAMS")
        while app.state.service.events.followers:
            api.get("/healthz")
        assert api.get(f"/v1/jobs/{job_id}", params={"wait": 0.01}).status_code == 200
