"""Answers of different judges on the leaderboard and in the dashboard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.integration.app.features.comparison.judged_runs import RIGHT, comparison_service

pytestmark = pytest.mark.postgres


async def judge(client: httpx.AsyncClient, agent: str, task: str, model: str) -> None:
    """Submit an answer to this judge and wait for its result."""
    text = f"{RIGHT}\n{RIGHT}\n{agent}"
    body = {"agent": agent, "task_id": task, "model": model, "answers": [{"name": "answer_1", "text": text}]}
    job_id = (await client.post("/v1/submissions", json=body)).raise_for_status().json()["jobs"][0]["id"]
    async with asyncio.timeout(240):
        while (await client.get(f"/v1/jobs/{job_id}")).json()["status"] != "succeeded":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_pages_warn_and_name_the_judges_if_there_are_several(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    async with (
        comparison_service(database_url, tmp_path / "judges", tmp_path / "data") as url,
        httpx.AsyncClient(base_url=url, timeout=240) as client,
    ):
        await judge(client, "walker", "rivers", "openai/gpt-6-luna")
        assert "different judges" not in (await client.get("/")).text
        await judge(client, "sitter", "rivers", "lexical")
        items = {one["agent_name"]: one["judges"] for one in (await client.get("/v1/leaderboard")).json()["items"]}
        assert items == {"walker": {"gpt-6-luna": 1}, "sitter": {"lexical": 1}}
        home = (await client.get("/")).text
        assert "different judges (gpt-6-luna, lexical)" in home
        assert "judged by gpt-6-luna</span>" in home and "judged by lexical</span>" in home
        assert "different judges" not in (await client.get("/agents/walker")).text
        await judge(client, "walker", "bridges", "lexical")
        assert "different judges (gpt-6-luna, lexical)" in (await client.get("/agents/walker")).text
        compared = (await client.get("/v1/compare", params={"a": "walker", "b": "sitter"})).json()
        assert compared["a"]["judges"] == {"gpt-6-luna": 1, "lexical": 1}
