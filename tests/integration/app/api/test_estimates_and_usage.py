"""Estimates compared with actual usage, and usage reports, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem, result_of, submit
from tests.integration.app.api.test_judged_again import (
    CLAIMS,
    Start,
    judged,
    start,
)
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres
__all__ = ["start"]

ANSWERS = [{"name": "answer_1", "text": "It is Paris."}]


async def estimate(api: httpx.AsyncClient, **submission: Any) -> dict[str, Any]:
    response = await api.post("/v1/estimates", json={"agent": "demo", "task_id": "paris", **submission})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_estimate_uses_earlier_results_of_the_task_and_stores_nothing(start: Start, model: StandInLLM):
    async with start(**CLAIMS) as api:
        before = await estimate(api, answers=ANSWERS)
        assert len(model.calls) == 0
        assert (await api.get("/v1/jobs")).json()["items"] == []
        assert (await api.get("/v1/pages")).json()["items"] == []
        result = await judged(api)
        after = await estimate(api, answers=ANSWERS)
        other = await estimate(api, answers=ANSWERS, model="openai/my-own")
    [first], [again], [unpriced] = before["items"], after["items"], other["items"]
    assert first["basis"] == "no earlier result: 1 to 40 claims assumed"
    assert again["basis"] == "1 earlier result of this answer"
    for found in (first, again, after["total"]):
        assert found["calls"]["low"] <= result["usage"]["calls"] <= found["calls"]["high"]
        assert found["usd"]["low"] <= result["usage"]["usd"] <= found["usd"]["high"]
    assert unpriced["basis"] == "1 earlier result of other models"
    assert (unpriced["calls"], unpriced["usd"], other["total"]["usd"]) == (again["calls"], None, None)


async def test_invalid_estimate_requests_return_problems(start: Start):
    async with start(**CLAIMS) as api:
        for submission, status in (({}, 422), ({"task_id": "none", "answers": ANSWERS}, 404)):
            body = {"agent": "demo", "task_id": "paris", **submission}
            assert_problem(await api.post("/v1/estimates", json=body), status)


async def test_usage_is_grouped_by_agent_task_model_and_role(start: Start, model: StandInLLM):
    async with start(**CLAIMS) as api:
        result = await judged(api)
        before = (await api.get("/v1/usage")).json()
        await judged(api)
        assert (await api.get("/v1/usage")).json() == before  # no reused replies
        [job_id] = await submit(api, task_id="paris", agent="other", model="openai/my-own")
        await result_of(api, job_id)
        found = (await api.get("/v1/usage")).json()
        by_agent = (await api.get("/v1/usage", params={"by": "agent", "model": "gpt-6-luna"})).json()
        nothing = (await api.get("/v1/usage", params={"since": "2999-01-01"})).json()
    priced, own = found["items"]
    named = {"agent": "demo", "task_id": "paris", "model": "gpt-6-luna", "role": "verify"}
    assert {name: priced[name] for name in named} == named
    assert (priced["calls"], priced["input_tokens"]) == (result["usage"]["calls"], result["usage"]["input_tokens"])
    assert priced["usd"] == pytest.approx(result["usage"]["usd"])
    assert (own["agent"], own["usd"], own["unpriced_calls"]) == ("other", None, own["calls"])
    assert (found["total"]["usd"], found["total"]["usd_known"]) == (None, pytest.approx(priced["usd"]))
    assert [item["agent"] for item in by_agent["items"]] == ["demo"]
    assert nothing["items"] == []
    assert nothing["total"]["usd"] == 0
