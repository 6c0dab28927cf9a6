from __future__ import annotations

import asyncio

import httpx
import pytest

from assay_client.wire import EventReader
from tests.fakes.evaluating import ScriptedEvaluation
from tests.integration.app.api.api_calls import FINAL_STATUSES, assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres


def events_of(text: str) -> list[tuple[str, dict, str | None]]:
    reader = EventReader()
    found = [reader.feed(line) for line in text.splitlines()]
    return [(event.name, event.data, event.id) for event in found if event is not None]


async def test_invalid_query_parameter_returns_422(api: httpx.AsyncClient):
    for name, value in (
        ("status", "sleeping"),
        ("limit", "0"),
        ("cursor", "job_1"),
        ("stauts", "queued"),
        ("agent", "\0"),
    ):
        read = assert_problem(await api.get("/v1/jobs", params={name: value}), 422)
        assert [error["path"] for error in read["errors"]] == [name]


async def test_running_job_can_be_cancelled_and_retried(open_api: OpenApi):
    evaluation = ScriptedEvaluation(gate=(gate := asyncio.Event()))
    async with open_api(evaluate=evaluation) as api:
        [job_id] = await submit(api)
        await evaluation.running.wait()
        assert_problem(await api.post(f"/v1/jobs/{job_id}/retry"), 409, "CONFLICT")
        cancelled = await api.post(f"/v1/jobs/{job_id}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        gate.set()
        again = await api.post(f"/v1/jobs/{job_id}/retry")
        assert (again.status_code, again.json()["status"]) == (202, "queued")
        assert (await wait_for_job(api, job_id))["status"] == "succeeded"
        assert_problem(await api.post(f"/v1/jobs/{job_id}/cancel"), 409, "CONFLICT")


async def test_event_stream_ends_with_terminal_status(working_api: httpx.AsyncClient):
    [job_id] = await submit(working_api)
    response = await working_api.get(f"/v1/jobs/{job_id}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    assert events[-1][0] == "status"
    assert events[-1][1]["status"] == "succeeded"
    assert not FINAL_STATUSES & {data["status"] for _, data, _ in events[:-1]}
    ids = [int(id_) for _, _, id_ in events if id_ is not None]
    assert ids == sorted(set(ids))
    for last in (str(ids[0]), "x", "1" * 400):
        resumed = await working_api.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": last})
        assert events_of(resumed.text)[-1] == events[-1]
    nothing_left = await working_api.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": str(ids[-1])})
    assert (nothing_left.status_code, nothing_left.content) == (204, b"")
