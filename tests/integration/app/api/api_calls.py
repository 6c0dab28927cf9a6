"""Helpers of the API tests: submit an answer, wait for its job, check a problem response."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

FINAL_STATUSES = {"succeeded", "failed", "cancelled"}


def submission_body(**fields: Any) -> dict[str, Any]:
    """Return a valid submission, overridden by ``fields``."""
    answers = [{"name": "answer_1", "text": "It is Paris."}]
    return {"agent": "demo", "task_id": "capital", "answers": answers} | fields


def assert_problem(response: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """Check that a response is this problem, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    read: dict[str, Any] = response.json()
    assert read["status"] == status
    assert {"type", "title", "detail", "code"} <= read.keys()
    if code is not None:
        assert read["code"] == code
    return read


async def submit(api: httpx.AsyncClient, **fields: Any) -> list[str]:
    """Create a submission and return the ids of its jobs."""
    response = await api.post("/v1/submissions", json=submission_body(**fields))
    assert response.status_code == 202, response.text
    return [job["id"] for job in response.json()["jobs"]]


async def wait_for_job(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    """Wait until the job has ended, and return it."""
    async with asyncio.timeout(240):
        while True:
            job: dict[str, Any] = (await api.get(f"/v1/jobs/{job_id}")).json()
            if job["status"] in FINAL_STATUSES:
                return job
            await asyncio.sleep(0.02)
