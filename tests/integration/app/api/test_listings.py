"""Lists of submissions, agents, runs, jobs and results: order, pages, filters and parts on request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem, submit

pytestmark = pytest.mark.postgres


async def listed(api: httpx.AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    """Return all items of a list, read in pages of two."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        response = await api.get(path, params={"limit": 2, **params, **cursor})
        assert response.status_code == 200, response.text
        read = response.json()
        items += read["items"]
        if read["next_cursor"] is None:
            return items
        assert len(read["items"]) == 2
        cursor = {"cursor": read["next_cursor"]}


async def test_submissions_are_listed_newest_first_in_pages(api: httpx.AsyncClient):
    for agent in ("one", "two", "three"):
        await submit(api, agent=agent, run="nightly", metadata={"commit": agent})
    found = await listed(api, "/v1/submissions")
    assert [one["agent"] for one in found] == ["three", "two", "one"]
    assert (found[0]["run"], found[0]["job_counts"]["queued"]) == ("nightly", 1)
    assert (found[0]["jobs"], found[0]["metadata"]) == (None, None)
    full = (await listed(api, "/v1/submissions", include=["jobs", "metadata"]))[0]
    assert full["metadata"] == {"commit": "three"}
    assert full["jobs"] == (await api.get(f"/v1/submissions/{full['id']}")).json()["jobs"]
    assert_problem(await api.get("/v1/submissions", params={"include": "everything"}), 422, "INVALID")


async def test_filters_select_by_agent_task_run_status_and_time(api: httpx.AsyncClient):
    await submit(api, agent="one", run="first")
    [job_id] = await submit(api, agent="two", task_id="broken", run="second")
    await api.post(f"/v1/jobs/{job_id}/cancel")
    now = datetime.now(UTC)
    later = (now + timedelta(hours=1)).isoformat()
    queries: tuple[tuple[dict[str, str], list[str]], ...] = (
        ({"agent": "two"}, ["two"]),
        ({"task_id": "broken"}, ["two"]),
        ({"run": "second"}, ["two"]),
        ({"status": "cancelled"}, ["two"]),
        ({"since": (now - timedelta(hours=1)).isoformat(), "until": later}, ["two", "one"]),
        ({"since": "2026-01-01"}, ["two", "one"]),
        ({"agent": "two", "status": "queued"}, []),
        ({"since": later}, []),
        ({"until": "2026-01-01"}, []),
    )
    for path in ("/v1/submissions", "/v1/jobs"):
        for query, agents in queries:
            assert [one["agent"] for one in await listed(api, path, **query)] == agents, query
        assert_problem(await api.get(path, params={"since": "yesterday"}), 422, "INVALID")
