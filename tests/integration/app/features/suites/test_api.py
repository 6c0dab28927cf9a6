"""Suites over HTTP: runs are jobs that resume and list their steps. The model is a stand-in server over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.multimodal import EXPECTED, STEPS, multimodal_reply, write_rows
from tests.integration.app.api.api_calls import assert_problem, wait_for_job
from tests.integration.app.api.conftest import OpenApi
from tests.standin.call import Call
from tests.standin.faults import RATE_LIMITED, Fault
from tests.standin.llm import StandInLLM

RUNS = "/v1/suites/mm-mind2web/runs"
MODEL = "openai/gpt-4o"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return an allowed data folder that contains a snapshot."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    source = write_rows(tmp_path / "test_website.parquet", STEPS)
    build_snapshot(
        source, folder / "snapshot.parquet", SamplingOptions(distractors=3), split=None, watch=lambda rows: None
    )
    return folder


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(fault_for=multimodal_reply) as server:
        yield server


def settings(model: StandInLLM, data: Path) -> dict[str, Any]:
    return {
        "suite_data": (data,),
        "openai_base_url": model.base_url,
        "openai_api_key": "key-of-the-tests",
        "model": MODEL,
        "stalled_s": 1.0,
    }


async def start(api: httpx.AsyncClient, **order: Any) -> dict[str, Any]:
    response = await api.post(RUNS, json={"data": "snapshot.parquet"} | order)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == response.json()["url"]
    accepted: dict[str, Any] = response.json()
    return accepted


async def test_run_returns_precomputed_metrics(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(**settings(model, data)) as api:
        accepted = await start(api)
        job = await wait_for_job(api, accepted["id"])
        assert (job["status"], job["error"]) == ("succeeded", None)
        assert job["progress"]["leaves_done"] == job["progress"]["leaves_total"] == 5
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
        run = (await api.get(accepted["url"])).json()
    assert {name: result[name] for name in EXPECTED} == pytest.approx(EXPECTED)
    assert result["status"] == "complete"
    assert (result["n_rows"], result["n_valid"], result["n_tasks_with_valid"]) == (7, 5, 3)
    assert result["final_score"] == pytest.approx(2 / 5)
    assert run["means"]["element_acc"] == pytest.approx(3 / 5)
    assert run["progress"] == {"steps_done": 5, "steps_total": 5, "scored": 5, "not_judged": 0}
    assert len(model.calls) == 10
    assert {call.params["max_tokens"] for call in model.calls} == {500}
    assert {call.params["temperature"] for call in model.calls} == {0}


async def test_steps_are_paginated_filtered_and_shown(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(**settings(model, data)) as api:
        url = (accepted := await start(api))["url"]
        await wait_for_job(api, accepted["id"])
        first = (await api.get(f"{url}/steps", params={"limit": 2})).json()
        rest = (await api.get(f"{url}/steps", params={"cursor": first["next_cursor"]})).json()
        assert [step["position"] for step in first["items"] + rest["items"]] == [0, 1, 3, 4, 6]
        failed = (await api.get(f"{url}/steps", params={"success": "false", "task_id": "t2"})).json()["items"]
        assert [step["id"] for step in failed] == ["t2:0", "t2:1"]
        wrong = (await api.get(f"{url}/steps/3")).json()
    step = wrong["step"]
    assert (step["element_acc"], step["action_f1"], step["step_acc"]) == (0, 1.0, 0)
    assert step["gold"]["op"] == "CLICK"
    assert "ELEMENT: " in step["raw_output"]
    assert step["picked"] not in step["gold"]["elements"]
    assert [letter for letter, _ in step["options"]] == ["A", "B", "C", "D"]
    assert "None of the other options" in step["prompt"][-1]["text"]
    assert "title" not in wrong["page"] and "id=0" in wrong["page"]
    assert {box["role"] for box in wrong["boxes"]} == {"gold", "picked"}


async def test_model_fault_is_not_zero_and_retry_requests_only_missing_steps(
    open_api: OpenApi, model: StandInLLM, data: Path
):
    broken = True

    def faulty(call: Call) -> Fault:
        return RATE_LIMITED if broken and "Do what t4 says" in call.text else multimodal_reply(call)

    model.fault_for = faulty
    async with open_api(**settings(model, data)) as api:
        accepted = await start(api)
        job = await wait_for_job(api, accepted["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
        assert (job["status"], result["status"], result["step_success_micro"]) == ("succeeded", "incomplete", None)
        assert result["bounds"]["low"]["step_success_micro"] == pytest.approx(1 / 5)
        assert result["bounds"]["high"]["step_success_micro"] == pytest.approx(2 / 5)
        [listed] = (await api.get("/v1/jobs")).json()["items"]
        assert listed["score"] == {"value": None, "low": pytest.approx(1 / 5), "high": pytest.approx(2 / 5)}
        assert result["not_judged"]["steps"][0] | {"detail": ""} == {
            "id": "t4:0",
            "reason": "llm_unavailable",
            "detail": "",
        }
        broken, before = False, len(model.calls)
        assert (await api.post(f"/v1/jobs/{accepted['id']}/retry")).status_code == 202
        job = await wait_for_job(api, accepted["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert {name: result[name] for name in EXPECTED} == pytest.approx(EXPECTED)
    assert len(model.calls) == before + 2


async def test_predictions_file_is_scored_without_a_model(open_api: OpenApi, model: StandInLLM, data: Path):
    given = [
        {"task_id": "t1", "step": 0, "element": "Z", "action": "CLICK", "value": ""},
        {"task_id": "t9", "step": 0, "raw_output": "ELEMENT: A"},
    ]
    (data / "given.json").write_text(json.dumps(given))
    async with open_api(**settings(model, data)) as api:
        accepted = await start(api, predictions="given.json")
        job = await wait_for_job(api, accepted["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert (result["not_judged"]["by_reason"], result["unknown_ids"]) == ({"no_prediction": 4}, ["t9:0"])
    assert model.calls == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.parquet", "link.parquet", "nothing.parquet", "a\0b", "out"])
async def test_data_outside_allowed_folders_returns_404(
    path: str, open_api: OpenApi, model: StandInLLM, data: Path, tmp_path: Path
):
    (tmp_path / "secret.parquet").write_bytes(b"")
    (tmp_path / "elsewhere").mkdir()
    (data / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    (data / "out").symlink_to(tmp_path / "elsewhere")
    async with open_api(workers=0, **settings(model, data)) as api:
        refused = assert_problem(await api.post(RUNS, json={"data": path}), 404, "DATA_NOT_FOUND")
        assert [error["path"] for error in refused["errors"]] == ["data"]
        both = await api.post(RUNS, json={"data": "snapshot.parquet", "predictions": path})
        assert [error["path"] for error in assert_problem(both, 404)["errors"]] == ["predictions"]


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"data": ""},
        {"data": "snapshot.parquet", "tokens": "bag"},
        {"data": "snapshot.parquet", "model": "no provider"},
        {"data": "snapshot.parquet", "max_examples": 0},
        {"data": "snapshot.parquet", "run": "a\0b"},
        {"data": "snapshot.parquet", "unknown": 1},
        {"data": "snapshot.parquet", "priority": 101},
        {"data": "snapshot.parquet", "budget_usd": 0},
    ],
)
async def test_invalid_order_returns_422(order: dict[str, Any], open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(workers=0, **settings(model, data)) as api:
        assert_problem(await api.post(RUNS, json=order), 422)


async def test_damaged_data_fails_the_run_with_location(open_api: OpenApi, model: StandInLLM, data: Path):
    (data / "broken.jsonl").write_text('{"task_id": "t1", "step": 0}\n')
    async with open_api(**settings(model, data)) as api:
        accepted = await start(api, data="broken.jsonl")
        job = await wait_for_job(api, accepted["id"])
    assert (job["status"], job["error"]["code"]) == ("failed", "SUITE_DATA")
    assert "broken.jsonl, row 0, field candidates" in job["error"]["detail"]


async def test_unknown_runs_steps_and_suites_return_404(open_api: OpenApi, model: StandInLLM, data: Path):
    async with open_api(workers=0, **settings(model, data)) as api:
        accepted = await start(api)
        for path in (
            f"{RUNS}/job_nothing",
            f"/v1/suites/mind2web/runs/{accepted['id']}",
            f"{accepted['url']}/steps/0",
            f"{accepted['url']}/steps/x",
            f"{accepted['url']}/steps/99999999999",
            f"{accepted['url']}/steps/0/screenshot",
            "/v1/suites/gaia/runs",
        ):
            assert_problem(await api.get(path), 404)
        assert_problem(await api.get(f"{accepted['url']}/steps", params={"cursor": "abc"}), 422)


async def test_runs_of_other_owners_return_404(open_api: OpenApi, model: StandInLLM, data: Path):
    keys = ("key-of-the-first", "key-of-the-second")
    async with open_api(**settings(model, data), api_keys=",".join(keys)) as api:
        first, second = ({"Authorization": f"Bearer {key}"} for key in keys)
        accepted = (await api.post(RUNS, json={"data": "snapshot.parquet"}, headers=first)).json()
        async with asyncio.timeout(240):
            while (await api.get(accepted["url"], headers=first)).json()["status"] != "succeeded":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        for path in ("", "/steps", "/steps/0", "/steps/0/screenshot"):
            assert (await api.get(accepted["url"] + path, headers=first)).status_code == 200
            assert_problem(await api.get(accepted["url"] + path, headers=second), 404)
            assert_problem(await api.get(accepted["url"] + path), 401)
        assert (await api.get(RUNS, headers=second)).json()["items"] == []
        assert_problem(await api.post(f"/v1/jobs/{accepted['id']}/cancel", headers=second), 404)


async def test_run_pauses_at_its_budget_and_resumes_when_it_is_raised(open_api: OpenApi, model: StandInLLM, data: Path):
    # A request costs about 0.003 USD, and its price is reserved before it is sent.
    async with open_api(**settings(model, data) | {"max_llm": 1}) as api:
        accepted = await start(api, budget_usd=0.02)
        async with asyncio.timeout(240):
            while (run := (await api.get(accepted["url"])).json())["stage"] != "paused":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        paid = len(model.calls)
        assert 0 < paid < 10
        job = (await api.get(accepted["job_url"])).json()
        assert (run["order"]["budget_usd"], job["status"]) == (0.02, "queued")
        raised = await api.patch(f"/v1/submissions/{job['submission_id']}", json={"budget_usd": None})
        assert raised.status_code == 200, raised.text
        job = await wait_for_job(api, accepted["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert {name: result[name] for name in EXPECTED} == pytest.approx(EXPECTED)
    assert len(model.calls) == 10
