"""Answers of different judges on the leaderboard and in the dashboard."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.app.features.comparison.judged_runs import RIGHT, SILENT, comparison_service, judge_run

pytestmark = pytest.mark.postgres


async def judge(client: httpx.AsyncClient, agent: str, task: str, model: str) -> None:
    """Submit an answer to this judge and wait for its result."""
    text = f"{RIGHT}\n{RIGHT}\n{agent}"
    body = {"agent": agent, "task_id": task, "model": model, "answers": [{"name": "answer_1", "text": text}]}
    job_id = (await client.post("/v1/submissions", json=body)).raise_for_status().json()["jobs"][0]["id"]
    async with asyncio.timeout(240):
        while (await client.get(f"/v1/jobs/{job_id}")).json()["status"] != "succeeded":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_figures_of_different_judges_are_refused_with_those_of_each(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    async with (
        comparison_service(database_url, tmp_path / "judges", tmp_path / "data") as url,
        httpx.AsyncClient(base_url=url, timeout=240) as client,
    ):

        async def refused(path: str, **params: str) -> list[dict[str, Any]]:
            response = await client.get(path, params=params)
            assert (response.status_code, response.json()["code"]) == (409, "MIXED_JUDGES"), response.text
            assert "mix_judges=true" in response.json()["detail"]
            offered: list[dict[str, Any]] = response.json()["judges"]
            return offered

        await judge(client, "walker", "rivers", "openai/gpt-6-luna")
        await judge(client, "walker", "bridges", "lexical")
        await judge(client, "sitter", "rivers", "lexical")
        assert (await client.get("/v1/agents/sitter/summary")).json()["judges"] == {"lexical": 1}

        offered = await refused("/v1/agents/walker/summary")
        assert {one["judge"]: one["answers"] for one in offered} == {"gpt-6-luna": 1, "lexical": 1}
        for one in offered:
            summary = (await client.get(one["url"])).json()
            assert summary["judges"] == {one["judge"]: 1}
            assert (summary["avg_score"], summary["num_tasks"]) == (one["avg_score"], one["num_tasks"])
        both = (await client.get("/v1/agents/walker/summary", params={"mix_judges": "true"})).json()
        assert (both["num_tasks"], both["judges"]) == (2, {"gpt-6-luna": 1, "lexical": 1})

        offered = await refused("/v1/leaderboard")
        assert {one["judge"]: [agent["agent"] for agent in one["agents"]] for one in offered} == {
            "lexical": ["sitter", "walker"], "gpt-6-luna": ["walker"]
        }  # fmt: skip
        for one in offered:
            items = (await client.get(one["url"])).json()["items"]
            assert {item["agent_name"]: item["avg_score"] for item in items} == {
                agent["agent"]: agent["avg_score"] for agent in one["agents"]
            }
        assert len((await client.get("/v1/leaderboard", params={"mix_judges": "true"})).json()["items"]) == 2

        offered = await refused("/v1/compare", a="walker", b="sitter")
        assert {one["judge"]: [side["name"] for side in one["sides"]] for one in offered} == {
            "lexical": ["walker", "sitter"], "gpt-6-luna": ["walker"]
        }  # fmt: skip

        home = (await client.get("/")).text
        assert "Shown: answers judged by <b>lexical</b>" in home and "/?judge=gpt-6-luna" in home
        assert "different judges" not in home and ">sitter</a>" in home
        other = (await client.get("/", params={"judge": "gpt-6-luna"})).text
        assert ">walker</a>" in other and ">sitter</a>" not in other
        table = (await client.get("/", params={"judge": "gpt-6-luna", "format": "csv"})).text
        assert "walker" in table and "sitter" not in table


async def test_page_does_not_call_unjudged_tasks_no_difference(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    async with (
        comparison_service(database_url, tmp_path / "judges", tmp_path / "data") as url,
        httpx.AsyncClient(base_url=url, timeout=240) as client,
    ):
        await judge_run(url, "walker", None, {"rivers": (RIGHT, RIGHT)})
        await judge_run(url, "sitter", None, {"rivers": (RIGHT, SILENT)})
        page = (await client.get("/compare", params={"a": "walker", "b": "sitter"})).text

    assert "; too few tasks for a significant difference</h2>" in page and "No significant difference" not in page
    assert "1 task is left out, because claims were not judged." in page
