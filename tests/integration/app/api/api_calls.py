"""Helpers of the API tests: run the application, submit an answer, wait for its job, check a problem response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

FINAL_STATUSES = {"succeeded", "failed", "cancelled"}


@asynccontextmanager
async def running_app(app: FastAPI, *, base_url: str = "http://127.0.0.1:8000") -> AsyncIterator[httpx.AsyncClient]:
    """Run the application with its lifespan, and yield a client."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base_url) as client,
    ):
        yield client


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


async def wait_until_paused(api: httpx.AsyncClient, job_ids: list[str]) -> list[dict[str, Any]]:
    """Wait until all jobs are paused, and return them."""
    async with asyncio.timeout(240):
        while True:
            jobs = [(await api.get(f"/v1/jobs/{job_id}")).json() for job_id in job_ids]
            if all(job["stage"] == "paused" for job in jobs):
                return jobs
            await asyncio.sleep(0.05)


async def result_of(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    """Wait until the job has succeeded, and return its result."""
    job = await wait_for_job(api, job_id)
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = (await api.get(f"/v1/results/{job['result_id']}")).json()
    return result
