"""Statistics over HTTP: summaries with intervals, and comparisons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay_client import AsyncClient, Client
from tests.fakes.evaluating import ScriptedEvaluation
from tests.integration.app.api.api_calls import assert_problem, submit
from tests.integration.app.api.conftest import OpenApi
from tests.integration.app.features.comparison.judged_runs import (
    RIGHT,
    SILENT,
    WRONG,
    comparison_service,
    judge_run,
)

pytestmark = pytest.mark.postgres

BEFORE = {"rivers": (RIGHT, WRONG), "bridges": (RIGHT, WRONG), "towers": (WRONG, WRONG)}
AFTER = {"rivers": (RIGHT, RIGHT), "bridges": (RIGHT, WRONG), "towers": (RIGHT, SILENT)}


@pytest.fixture
async def api(database_url: str, judges: Path, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Service with two keys; the first one owns two judged runs."""
    async with comparison_service(database_url, judges, tmp_path / "data", api_keys="mine,yours") as url:
        await judge_run(url, "walker", "before", BEFORE, key="mine")
        await judge_run(url, "walker", "after", AFTER, key="mine")
        headers = {"Authorization": "Bearer mine"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=240) as client:
            yield client


async def test_statistics_and_comparisons_of_two_runs(api: httpx.AsyncClient):
    """One test, because starting the service and judging takes most of the time."""
    await summaries(api)
    await comparisons(api)
    await access_by_other_owner(api)


async def summaries(api: httpx.AsyncClient) -> None:
    newest = (await api.get("/v1/agents/walker/summary")).json()["statistics"]
    assert (newest["tasks"], newest["answers"], newest["not_judged"]) == (3, 6, {"answers": 1, "share": 1 / 6})
    score = newest["score"]
    assert (score["value"], score["low"], score["high"]) == (None, pytest.approx(1 / 2), pytest.approx(7 / 12))
    assert 0 <= score["interval"]["low"] < score["low"] < score["high"] < score["interval"]["high"] <= 1
    assert score["student_t"]["method"] == "Student t over 3 tasks"
    assert newest["success"]["interval"]["method"] == "Gaffke over 3 tasks"
    assert "3 tasks, fewer than 5" in newest["warnings"][0]
    assert [one["k"] for one in newest["pass_at_k"]] == [1, 2]
    before = (await api.get("/v1/agents/walker/summary", params={"run": "before"})).json()
    assert (before["avg_score"], before["unfinished"]) == (0.3333, 0)
    assert before["statistics"]["score"]["value"] == pytest.approx(1 / 3)
    assert before["statistics"]["score"]["bootstrap"]["method"].startswith("bootstrap over 3 tasks")
    assert_problem(await api.get("/v1/agents/walker/summary", params={"run": "never"}), 404, "NOT_FOUND")
    assert_problem(await api.get("/v1/agents/walker/summary", params={"run": "a b"}), 422, "INVALID")
    [row] = (await api.get("/v1/leaderboard")).json()["items"]
    assert row["statistics"]["score"]["interval"] == score["interval"]
    assert row["statistics"]["score"]["bootstrap"] is None  # not computed for the leaderboard: too slow


async def comparisons(api: httpx.AsyncClient) -> None:
    found = (await api.get("/v1/compare", params={"a": "walker@before", "b": "walker@after"})).json()
    [one] = found["comparisons"]
    score = one["score"]
    assert (score["tasks"], score["certain"], score["difference"]) == (3, 2, 0.25)
    assert (score["low"], score["high"]) == (pytest.approx(1 / 3), pytest.approx(0.5))
    assert score["sign_flip"] == {
        "p": 1.0, "p_holm": 1.0, "exact": True, "patterns": 2, "tasks_that_differ": 1,
        "smallest_p": 1.0,
        "method": "exact sign-flip of 1 tasks",
    }  # fmt: skip
    assert score["verdict"] == "too_few_tasks"
    history = (await api.get("/v1/agents/walker/history")).json()["items"]
    rivers = [row["result_id"] for row in history if row["task_id"] == "rivers"]
    params = {"a": rivers[1], "b": [rivers[0], "walker@after"]}
    single, whole = (await api.get("/v1/compare", params=params)).json()["comparisons"]
    assert (single["score"]["difference"], single["b"]["name"]) == (0.5, rivers[0])
    assert (whole["score"]["tasks"], whole["only_b"]) == (1, ["bridges", "towers"])
    for wrong, status in (
        ({"a": "walker"}, 422),
        ({"a": "walker", "b": "no/name"}, 422),
        ({"a": "walker", "b": ["walker"] * 21}, 422),
        ({"a": "walker", "b": "nobody"}, 404),
        ({"a": "res_nothing", "b": "walker"}, 404),
    ):
        assert_problem(await api.get("/v1/compare", params=wrong), status)
    await flips(api, one)


async def flips(api: httpx.AsyncClient, one: dict[str, Any]) -> None:
    """Check the flipped leaves and causes of each task, and that the paginated list returns the same."""
    flipped = {
        task["task_id"]: [(flip["leaf"], flip["before"], flip["after"]) for flip in task["flips"]]
        for task in one["tasks"]
    }
    assert flipped == {
        "bridges": [],
        "rivers": [("second", "failed", "passed")],
        "towers": [("second", "failed", "not_judged"), ("first", "failed", "passed")],
    }
    assert {task["task_id"]: task["flipped"] for task in one["tasks"]} == {"bridges": 0, "rivers": 1, "towers": 2}
    assert (one["flipped"], one["flips_left_out"]) == (3, 0)
    listed = [flip for task in one["tasks"] for flip in task["flips"]]
    assert all(flip["causes"] == [{"cause": "answer", "detail": "the claim in the answer changed"}] for flip in listed)
    sides = {"a": "walker@before", "b": "walker@after"}
    paged, cursor = list[dict[str, Any]](), None
    while not paged or cursor:
        found = (
            await api.get("/v1/compare/flips", params={**sides, "limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        paged += found["items"]
        cursor = found["next_cursor"]
    assert paged == listed
    async with AsyncClient(str(api.base_url), api_key="mine") as client:
        assert [flip async for flip in client.list_flips(sides["a"], sides["b"])] == listed
    with Client(str(api.base_url), api_key="mine") as blocking:
        assert await asyncio.to_thread(lambda: list(blocking.list_flips(sides["a"], sides["b"]))) == listed
    back = (await api.get("/v1/compare/flips", params={"a": sides["b"], "b": sides["a"]})).json()["items"]
    assert {(flip["before"], flip["after"]) for flip in back} == {(flip["after"], flip["before"]) for flip in listed}
    beyond = (await api.get("/v1/compare/flips", params={**sides, "cursor": "999999999"})).json()
    assert beyond == {"items": [], "next_cursor": None}
    assert_problem(await api.get("/v1/compare/flips", params={**sides, "cursor": "flip_1"}), 422, "INVALID")
    assert_problem(await api.get("/v1/compare/flips", params={"a": "walker", "b": "nobody"}), 404, "NOT_FOUND")


async def access_by_other_owner(api: httpx.AsyncClient) -> None:
    [newest] = (await api.get("/v1/results", params={"limit": 1})).json()["items"]
    paths = (
        "/v1/agents/walker/summary", "/v1/compare?a=walker&b=walker",
        "/v1/compare/flips?a=walker&b=walker",
        f"/v1/compare?a={newest['id']}&b={newest['id']}",
    )  # fmt: skip
    assert [(await api.get(path)).status_code for path in paths] == [200] * len(paths)
    yours = {"Authorization": "Bearer yours"}
    assert [(await api.get(path, headers=yours)).status_code for path in paths] == [404] * len(paths)


async def test_summary_counts_unfinished_jobs(open_api: OpenApi):
    async with open_api(workers=0, evaluate=ScriptedEvaluation()) as api:
        await submit(api)
        found = (await api.get("/v1/agents/demo/summary")).json()
    assert (found["unfinished"], found["statistics"], found["num_tasks"]) == (1, None, 0)
