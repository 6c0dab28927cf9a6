"""Pausing a provider: it gets no requests, and its jobs wait until it is resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.fakes.services import watch_pauses
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job, wait_until_paused
from tests.integration.app.api.conftest import OpenApi
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

FRANCE = {"https://example.org/france": "Paris is the capital of France."}
ANSWERS = [{"name": f"answer_{nth}", "text": f"It is Paris, for the {nth}th time."} for nth in range(3)]
WHY = {"reason": "invoice under dispute"}


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(api_key="key") as server:
        yield server


def with_model(model: StandInLLM) -> dict[str, Any]:
    return {
        "pages": FRANCE,
        "model": "openai/gpt-6-luna",
        "openai_api_key": "key",
        "openai_base_url": model.base_url,
    }


async def test_paused_provider_gets_no_requests_and_jobs_finish_after_resume(
    open_api: OpenApi, model: StandInLLM, monkeypatch: pytest.MonkeyPatch
):
    pauses_read = watch_pauses(monkeypatch)
    async with open_api(**with_model(model)) as api:
        paused = (await api.post("/v1/providers/openai/pause", json=WHY)).json()
        assert (paused["provider"], paused["status"], paused["paused_by"]) == ("openai", "paused", "local")
        await pauses_read.wait()
        job_ids = await submit(api, answers=ANSWERS)
        jobs = await wait_until_paused(api, job_ids)
        assert model.calls == []
        assert {(job["status"], job["attempts"], job["error"]["code"]) for job in jobs} == {
            ("queued", 0, "PROVIDER_PAUSED")
        }
        assert "openai was paused by local: invoice under dispute" in jobs[0]["error"]["detail"]
        resumed = (await api.post("/v1/providers/openai/resume")).json()
        assert resumed == {
            "provider": "openai", "status": "in_use", "reason": None, "paused_by": None, "paused_at": None
        }  # fmt: skip
        done = [await wait_for_job(api, job_id) for job_id in job_ids]
        results = [(await api.get(f"/v1/results/{job['result_id']}")).json() for job in done]
    assert {(job["status"], job["attempts"]) for job in done} == {("succeeded", 1)}
    assert {result["status"] for result in results} == {"complete"}


async def test_pause_survives_restart(open_api: OpenApi, model: StandInLLM):
    async with open_api(workers=0, **with_model(model)) as api:
        await api.post("/v1/providers/openai/pause", json=WHY)
    async with open_api(**with_model(model)) as api:
        await wait_until_paused(api, await submit(api, answers=ANSWERS))
        listed = (await api.get("/v1/providers")).json()["items"]
    assert model.calls == []
    assert [(each["provider"], each["status"]) for each in listed] == [
        ("azure", "in_use"), ("bedrock", "in_use"), ("lexical", "in_use"), ("openai", "paused")
    ]  # fmt: skip


async def test_provider_aliases_are_accepted_and_unknown_names_return_404(api: httpx.AsyncClient):
    paused = (await api.post("/v1/providers/azure_openai/pause", json=WHY)).json()
    assert paused["provider"] == "azure"
    assert assert_problem(await api.post("/v1/providers/nobody/pause", json=WHY), 404)["code"] == "NOT_FOUND"
    assert assert_problem(await api.post("/v1/providers/openai/pause", json={"reason": ""}), 422)
    assert assert_problem(await api.post("/v1/providers/openai/pause", json={"reason": "a\nb"}), 422)
