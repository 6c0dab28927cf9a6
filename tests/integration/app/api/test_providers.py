"""Pausing a provider: it gets no requests, and its jobs wait until it is resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.app.api.api_calls import submit, wait_for_job, wait_until_paused
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


async def test_paused_provider_gets_no_requests_and_jobs_finish_after_resume(open_api: OpenApi, model: StandInLLM):
    settings: dict[str, Any] = {
        "model": "openai/gpt-6-luna", "openai_api_key": "key", "openai_base_url": model.base_url
    }  # fmt: skip
    async with open_api(workers=0, **settings) as api:
        paused = (await api.post("/v1/providers/openai/pause", json=WHY)).json()
        assert (paused["provider"], paused["status"], paused["paused_by"]) == ("openai", "paused", "local")
    async with open_api(pages=FRANCE, **settings) as api:
        job_ids = await submit(api, answers=ANSWERS)
        jobs = await wait_until_paused(api, job_ids)
        listed = (await api.get("/v1/providers")).json()["items"]
        assert [(each["provider"], each["status"]) for each in listed] == [
            ("azure", "in_use"), ("bedrock", "in_use"), ("lexical", "in_use"), ("openai", "paused")
        ]  # fmt: skip
        assert model.calls == []
        assert {(job["status"], job["attempts"], job["error"]["code"]) for job in jobs} == {
            ("queued", 0, "PROVIDER_PAUSED")
        }
        assert "openai was paused by local: invoice under dispute" in jobs[0]["error"]["detail"]
        assert (await api.post("/v1/providers/openai/resume")).json()["status"] == "in_use"
        done = [await wait_for_job(api, job_id) for job_id in job_ids]
    assert {(job["status"], job["attempts"]) for job in done} == {("succeeded", 1)}
