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


async def test_succeeded_job_has_result_progress_and_times(working_api: httpx.AsyncClient):
    [job_id] = await submit(working_api)
    job = await wait_for_job(working_api, job_id)
    assert job["status"] == "succeeded"
    assert job["attempts"] == 1
    assert job["error"] is None
    assert job["progress"] == {"pages_done": 2, "pages_total": 2, "leaves_done": 1, "leaves_total": 1}
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]
    result = (await working_api.get(f"/v1/results/{job['result_id']}")).json()
    assert result["id"] == job["result_id"]


async def test_jobs_are_paginated_newest_first(api: httpx.AsyncClient):
    made = [(await submit(api, agent=f"agent{n}"))[0] for n in range(5)]
    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        part = (await api.get("/v1/jobs", params=query)).json()
        assert len(part["items"]) <= 2
        seen += [job["id"] for job in part["items"]]
        cursor = part["next_cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"status": "sleeping"}, "status"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1000"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"cursor": "../x"}, "cursor"),
        ({"cursor": "job_1"}, "cursor"),
        ({"cursor": "res_0123456789abcdefghjkmnpqrs"}, "cursor"),
        ({"stauts": "queued"}, "stauts"),
        ({"agent": "\0"}, "agent"),
    ],
)
async def test_invalid_query_parameter_returns_422(api: httpx.AsyncClient, query: dict[str, str], path: str):
    read = assert_problem(await api.get("/v1/jobs", params=query), 422)
    assert [error["path"] for error in read["errors"]] == [path]


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


async def test_event_stream_resumes_after_last_event_id(working_api: httpx.AsyncClient):
    [job_id] = await submit(working_api)
    first = events_of((await working_api.get(f"/v1/jobs/{job_id}/events")).text)
    url = f"/v1/jobs/{job_id}/events"
    resumed = await working_api.get(url, headers={"Last-Event-ID": first[0][2] or ""})
    assert events_of(resumed.text)[-1] == first[-1]
    nothing_left = await working_api.get(url, headers={"Last-Event-ID": first[-1][2] or ""})
    assert (nothing_left.status_code, nothing_left.content) == (204, b"")


@pytest.mark.parametrize("odd", ["x", "-1", "1" * 400, "²", ""])
async def test_invalid_last_event_id_returns_current_state(working_api: httpx.AsyncClient, odd: str):
    [job_id] = await submit(working_api)
    await wait_for_job(working_api, job_id)
    headers = {b"Last-Event-ID": odd.encode("latin-1")}
    response = await working_api.get(f"/v1/jobs/{job_id}/events", headers=headers)
    assert [data["status"] for _, data, _ in events_of(response.text)] == ["succeeded"]


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/retry")])
async def test_unknown_job_is_named_in_the_error(working_api: httpx.AsyncClient, method: str, path: str):
    reply = await working_api.request(method, "/v1/jobs/job_unknown" + path)
    assert_problem(reply, 404, "NOT_FOUND")
    assert reply.json()["detail"] == "Job 'job_unknown' not found"
