"""History of an agent, origin of a result, and the judged answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

ANSWER = "Paris, of course: [source](https://example.org/france). \u00dcber \u2028 all.\n"


async def judge_answer(api: httpx.AsyncClient, *, run: str, agent: str = "demo", text: str = ANSWER) -> dict[str, Any]:
    """Submit an answer, wait, and return its job."""
    body = {"agent": agent, "task_id": "capital", "answers": [{"name": "answer_1", "text": text}], "run": run}
    accepted = (await api.post("/v1/submissions", json=body)).json()
    async with asyncio.timeout(240):
        while True:
            job: dict[str, Any] = (await api.get(f"/v1/jobs/{accepted['jobs'][0]['id']}")).json()
            if job["status"] == "succeeded":
                return job
            await asyncio.sleep(0.02)


async def test_agent_history_is_newest_first_with_runs(working_api: httpx.AsyncClient):
    jobs = [await judge_answer(working_api, run=run) for run in ("monday", "tuesday")]
    await judge_answer(working_api, run="wednesday", agent="another")
    listed = (await working_api.get("/v1/agents/demo/history")).json()
    assert [(item["run"], item["result_id"], item["job_id"]) for item in listed["items"]] == [
        ("tuesday", jobs[1]["result_id"], jobs[1]["id"]),
        ("monday", jobs[0]["result_id"], jobs[0]["id"]),
    ]
    first = (await working_api.get("/v1/agents/demo/history", params={"limit": 1})).json()
    rest = (await working_api.get("/v1/agents/demo/history", params={"cursor": first["next_cursor"]})).json()
    assert first["items"] + rest["items"] == listed["items"]
    assert (await working_api.get("/v1/agents/nobody/history")).json()["items"] == []
    path = f"/v1/results/{jobs[0]['result_id']}"
    origin, result = (await working_api.get(f"{path}/origin")).json(), (await working_api.get(path)).json()
    assert (origin["job_id"], origin["submission_id"]) == (jobs[0]["id"], jobs[0]["submission_id"])
    assert (origin["answer_sha256"], origin["final_score"]) == (result["answer_sha256"], result["final_score"])
    answer = await working_api.get(f"{path}/answer")
    assert answer.content == ANSWER.encode()
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
