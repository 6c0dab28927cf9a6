"""YAML files of tasks over HTTP, and the newest results of a task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app, submit, wait_for_job
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

URL = "https://example.org/paris"
PAGES = {URL: "Paris is the capital of France. It lies on the Seine."}
SOURCE = """\
format: 1
version: "1"
description: Tell of Paris.  # the question
fields: {city: }
rubric:
  parallel:
    # Checked by hand in 2025.
    capital:
      claim: "{city} is the capital of France"  # the main claim
      sources: https://example.org/paris
    river: {claim: "{city} lies on the Seine", sources: "https://example.org/paris"}
"""
CAPITAL = "rubric/parallel/capital"
FILE = "/v1/tasks/paris/file"
REFUTED = "{city} is the largest city of France"

Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


def verdict(call: Call) -> bool:
    return "largest" not in (call.claim or "")


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=verdict, extractions={"Values": {"city": "Paris"}}) as server:
        yield server


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    folder = tmp_path / "judges"
    folder.mkdir()
    (folder / "paris.yaml").write_text(SOURCE)
    (folder / "native.py").write_text(
        "from judges.registry import judge\n@judge(task='native', description='What?')\nasync def native(ctx): ...\n"
    )
    return folder


@pytest.fixture
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Start:
    @asynccontextmanager
    async def started(**changes: Any) -> AsyncIterator[httpx.AsyncClient]:
        settings = settings_for_tests(
            data_dir=tmp_path,
            database_url=database_url,
            judges=(judges,),
            model="openai/gpt-4.1",
            openai_base_url=model.base_url,
            **changes,
        )
        app = create_app(settings, workers=1, runtime=scripted_runtime(judges, PAGES, data_folder=tmp_path / "kept"))
        async with running_app(app) as client:
            yield client

    return started


@pytest.fixture
async def api(start: Start) -> AsyncIterator[httpx.AsyncClient]:
    async with start() as client:
        yield client


async def judged(api: httpx.AsyncClient) -> dict[str, Any]:
    """Judge an answer and return its job."""
    [job_id] = await submit(api, task_id="paris", answers=[{"name": "answer_1", "text": f"Paris, [see]({URL})."}])
    job = await wait_for_job(api, job_id)
    assert job["status"] == "succeeded", job
    return job


async def test_file_has_its_tree(api: httpx.AsyncClient):
    found = (await api.get(FILE)).json()
    assert (found["file"], found["text"], found["problems"]) == ("paris.yaml", SOURCE, [])
    assert [(node["path"], node["line"]) for node in found["nodes"]] == [(CAPITAL, 8), ("rubric/parallel/river", 11)]
    assert (await api.get("/v1/tasks/paris")).json()["file"] == "paris.yaml"
    page = (await api.get("/tasks/paris")).text
    assert "Text of paris.yaml" in page and "# Checked by hand in 2025." in page


async def test_broken_file_can_be_read(api: httpx.AsyncClient, judges: Path):
    (judges / "paris.yaml").write_text(SOURCE.replace("{city} is the capital", "{town} is the capital"))
    assert (await api.get("/v1/tasks/paris")).json()["status"] == "broken"
    found = (await api.get(FILE)).json()
    assert [(one["line"], one["column"]) for one in found["problems"]] == [(9, 16)]
    assert len(found["nodes"]) == 2
    (judges / "paris.yaml").write_bytes(b"a: [\n")
    found = (await api.get(FILE)).json()
    assert (found["nodes"], found["problems"][0]["line"]) == ([], 2)
    assert (await api.get("/tasks/paris")).status_code == 200


async def test_scores_are_those_of_the_newest_results(api: httpx.AsyncClient, judges: Path):
    old = await judged(api)
    (judges / "paris.yaml").write_text(SOURCE.replace("{city} is the capital of France", REFUTED))
    new = await judged(api)
    answers = [{"name": "answer_2", "text": f"Paris, [see]({URL})."}]
    [other] = await submit(api, agent="heron", task_id="paris", answers=answers)
    other_result = (await wait_for_job(api, other))["result_id"]
    items = (await api.get("/v1/task-scores")).json()["items"]
    assert [(one["agent"], one["result_id"]) for one in items] == [("demo", new["result_id"]), ("heron", other_result)]
    for one in items:
        assert (one["task_id"], one["run"], one["answers"], one["incomplete"]) == ("paris", None, 1, 0)
        assert one["score"] == {"value": 0.5, "low": 0.5, "high": 0.5}
        assert one["success"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert (await api.get("/v1/task-scores", params={"task_id": "native"})).json()["items"] == []
    means = (await api.get("/v1/mean-scores", params={"judge": items[0]["judge"]})).json()["items"]
    assert [(one["agent"], one["tasks"], one["score"]["value"]) for one in means] == [
        ("demo", 1, 0.5),
        ("heron", 1, 0.5),
    ]
    assert (await api.get("/v1/mean-scores", params={"task_id": "native"})).json()["items"] == []
    page = (await api.get("/v1/tasks/paris/answers", params={"limit": 1})).json()
    assert [one["result_id"] for one in page["items"]] == [other_result]
    page = (await api.get("/v1/tasks/paris/answers", params={"cursor": page["next_cursor"]})).json()
    assert [(one["result_id"], one["job_id"]) for one in page["items"]] == [(new["result_id"], new["id"])]
    assert new["result_id"] != old["result_id"]


async def test_result_without_a_score_is_listed_and_counts_in_no_mean(api: httpx.AsyncClient, judges: Path):
    text = SOURCE.replace("    capital:\n", "    capital:\n      applies_if: not given(city)\n")
    (judges / "paris.yaml").write_text(text.replace("river: {", "river: {applies_if: not given(city), "))
    job = await judged(api)
    result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert result["score"] == {"value": None, "low": None, "high": None, "reason": "nothing_applies"}
    assert result["status"] == "complete"
    assert (await api.get("/v1/task-scores")).json()["items"] == []
    [listed] = (await api.get("/v1/agents/demo/history")).json()["items"]
    [answer] = (await api.get("/v1/tasks/paris/answers")).json()["items"]
    [queued] = (await api.get("/v1/jobs")).json()["items"]
    assert (listed["score"], answer["score"], queued["score"]) == (None, None, None)
    summary = (await api.get("/v1/agents/demo/summary")).json()
    assert (summary["avg_score"], summary["nothing_applies"], summary["bounds"]["score"]) == (None, 1, None)
    [row] = (await api.get("/v1/leaderboard")).json()["items"]
    assert (row["avg_score"], row["statistics"]) == (None, None)
    for page in (
        f"/results/{job['result_id']}",
        "/",
        "/agents/demo",
        "/agents/demo/statistics",
        "/tasks/paris",
        "/jobs",
    ):
        assert (await api.get(page)).status_code == 200, page


async def test_result_page_says_that_the_judge_has_changed(api: httpx.AsyncClient, judges: Path):
    job = await judged(api)
    said = "the task file has changed since"
    assert said not in (await api.get(f"/results/{job['result_id']}")).text
    (judges / "paris.yaml").write_text(SOURCE + "# Looked at again.\n")
    assert said in (await api.get(f"/results/{job['result_id']}")).text
