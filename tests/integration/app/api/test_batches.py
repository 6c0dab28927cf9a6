"""Cancellation of many jobs, and deletion of submissions."""

from __future__ import annotations

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem, submission_body, submit, wait_for_job

pytestmark = pytest.mark.postgres


async def test_submission_is_cancelled_and_deleted(api: httpx.AsyncClient):
    answers = [{"name": f"answer_{n}", "text": f"It is Paris, said {n}."} for n in (1, 2)]
    made = await api.post("/v1/submissions", json=submission_body(answers=answers), headers={"Idempotency-Key": "n1"})
    path = f"/v1/submissions/{made.json()['id']}"
    assert_problem(await api.delete(path), 409, "CONFLICT")
    cancelled = (await api.post(f"{path}/cancel")).json()
    assert [job["status"] for job in cancelled["jobs"]] == ["cancelled", "cancelled"]
    assert (await api.delete(path)).json() == {"jobs": 2, "results": 0, "answers": 2}
    assert_problem(await api.get(path), 404)
    assert (await api.get("/v1/jobs")).json()["items"] == []
    again = await api.post("/v1/submissions", json=submission_body(answers=answers), headers={"Idempotency-Key": "n1"})
    assert (again.status_code, again.json()["id"] != made.json()["id"]) == (202, True)


async def test_reviewed_result_is_deleted_only_with_force(working_api: httpx.AsyncClient):
    api = working_api
    job = await wait_for_job(api, (await submit(api))[0])
    review = {"leaf": "leaf", "outcome": "failed", "reason": "No.", "by": "Ada"}
    assert (await api.post(f"/v1/results/{job['result_id']}/overrides", json=review)).status_code == 201
    path = f"/v1/submissions/{job['submission_id']}"
    read = assert_problem(await api.delete(path), 409, "RETAINED")
    assert read["errors"] == [{"path": job["result_id"], "message": "people reviewed it"}]
    assert (await api.get(f"/v1/results/{job['result_id']}")).status_code == 200
    assert (await api.delete(path, params={"force": "true"})).json()["results"] == 1
    assert (await api.get("/v1/reviews")).json()["items"] == []
