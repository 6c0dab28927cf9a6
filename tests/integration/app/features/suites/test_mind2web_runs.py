"""Mind2Web runs over HTTP: same metrics as the command, and access to each round."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.mind2web import (
    FIGURES_SCORED_ZERO,
    mind2web_reply,
    nine_steps,
    ranks_of_nine_steps,
    write_scores,
    write_split,
)
from tests.integration.app.api.api_calls import assert_problem, wait_for_job
from tests.integration.app.api.conftest import OpenApi
from tests.standin.llm import StandInLLM

RUNS = "/v1/suites/mind2web/runs"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    write_split(folder, nine_steps())
    write_scores(folder / "scores.pkl", ranks_of_nine_steps())
    return folder


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(fault_for=mind2web_reply) as server:
        yield server


def settings(model: StandInLLM, data: Path) -> dict[str, Any]:
    return {
        "suite_data": (data,),
        "openai_base_url": model.base_url,
        "openai_api_key": "key-of-the-tests",
        "model": "openai/gpt-4o",
    }


ORDER = {"data": ".", "split": "test_task", "scores": "scores.pkl"}


async def test_run_returns_precomputed_metrics(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(**settings(model, data)) as api:
        accepted = (await api.post(RUNS, json=ORDER)).json()
        job = await wait_for_job(api, accepted["id"])
        assert (job["status"], job["error"]) == ("succeeded", None)
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
        steps = (await api.get(f"{accepted['url']}/steps")).json()["items"]
    figures = {name: value for name, value in FIGURES_SCORED_ZERO.items() if not isinstance(value, dict)}
    assert {name: result[name] for name in figures} == pytest.approx(figures)
    assert result["error_ratio"] == pytest.approx(FIGURES_SCORED_ZERO["error_ratio"])
    assert len(steps) == 9
    assert len({step["task_id"] for step in steps}) == 5


async def test_step_contains_page_boxes_and_rounds(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(**settings(model, data)) as api:
        accepted = (await api.post(RUNS, json=ORDER)).json()
        await wait_for_job(api, accepted["id"])
        found = (await api.get(f"{accepted['url']}/steps/0")).json()
        no_picture = assert_problem(await api.get(f"{accepted['url']}/steps/0/screenshot"), 404)
    assert "blue click" in found["page"]
    assert found["screenshot"] is None
    assert "no" in no_picture["detail"]
    step = found["step"]
    assert len(step["rounds"]) == len(step["raw_output"]) == len(step["prompt"]) > 1
    assert step["gold"]["elements"] == ["1"]
    assert {box["role"] for box in found["boxes"]} == {"gold", "picked"}


async def test_guide_runs_over_http(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(**settings(model, data)) as api:
        accepted = (await api.post(RUNS, json=ORDER | {"protocol": "guide", "max_html_chars": 200})).json()
        job = await wait_for_job(api, accepted["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
        step = (await api.get(f"{RUNS}/{accepted['id']}/steps/3")).json()
        wrong = await api.post(RUNS, json=ORDER | {"protocol": "other"})
    assert result["metrics"]["step_micro"] == pytest.approx(5 / 6)
    assert result["metrics"]["task_success"] == pytest.approx(3 / 4)
    assert step["page"].startswith("<html backend_node_id") and step["page"].endswith("... (truncated)")
    assert {call.params["metadata"]["sample_id"] for call in model.calls} >= {"T1_a", "T4_a"}
    assert_problem(wrong, 422)


async def test_runs_are_compared(open_api: OpenApi, model: StandInLLM, data: Path):
    keys = "otter:submit:0b9ad5f2c1e84736a5d0,heron:submit:77c3e1f0492bd86a1e5c"
    mine, other = ({"Authorization": f"Bearer {entry.rpartition(':')[2]}"} for entry in keys.split(","))
    orders: tuple[dict[str, Any], ...] = ({"run": "first"}, {"run": "weak", "model": "openai/gpt-4o-mini", "top_k": 1})
    async with open_api(**settings(model, data), api_keys=keys) as api:
        api.headers.update(mine)
        ids = [await finished_run(api, order) for order in orders]
        compare = "/v1/suites/mind2web/compare"
        compared = (await api.get(compare, params={"a": ids[0], "b": ids[1]})).json()
        unknown = await api.get(compare, params={"a": ids[0], "b": "job_none"})
        missing = await api.get(compare, params={"a": ids[0]})
        foreign = await api.get(compare, params={"a": ids[0], "b": ids[1]}, headers=other)
    assert {one["setting"] for one in compared["settings"]} == {"top_k", "model"}
    assert (compared["steps"], compared["micro"]["step"]["a"]) == (9, pytest.approx(4 / 9))
    assert compared["micro"]["step"]["difference"] == pytest.approx(-4 / 9)
    for response, status in ((unknown, 404), (missing, 422), (foreign, 404)):
        assert_problem(response, status)


async def finished_run(api: httpx.AsyncClient, order: dict[str, Any]) -> str:
    """Run Mind2Web with these options and return the id of the run."""
    accepted = (await api.post(RUNS, json=ORDER | order)).json()
    assert (await wait_for_job(api, accepted["id"]))["status"] == "succeeded"
    return str(accepted["id"])


@pytest.mark.parametrize("split", ["../elsewhere", "..", "/etc"])
async def test_split_cannot_name_a_folder_outside_of_the_data(
    split: str, open_api: OpenApi, model: StandInLLM, data: Path
):
    async with open_api(workers=0, **settings(model, data)) as api:
        response = await api.post(RUNS, json={"data": ".", "split": split})
    assert [error["path"] for error in assert_problem(response, 422)["errors"]] == ["split"]
