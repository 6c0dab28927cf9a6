"""Models that the provider does not have: one request, and only their jobs pause. The model is a stand-in server over
HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.llm import patient_circuits  # noqa: F401 - fixture
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app, submit, wait_for_job, wait_until_paused
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("patient_circuits")]

FRANCE = {"https://example.org/france": "Paris is the capital of France."}
ANSWERS = [{"name": f"answer_{nth}", "text": f"It is Paris, for the {nth}th time."} for nth in range(6)]
SOON = (datetime.now(UTC) + timedelta(days=30)).date()
MISTYPED = "gpt-6-lunna"


def model_not_found(call: Call) -> Fault | None:
    if call.model != MISTYPED:
        return None
    return Fault(status=404, code="model_not_found", message=f"The model `{call.model}` does not exist")


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as server:
        server.fault_for = model_not_found
        server.models = [{"id": "gpt-6-luna"}, {"id": "old-model", "shutdown_date": SOON.isoformat()}]
        yield server


@pytest.fixture
async def api(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> AsyncIterator[httpx.AsyncClient]:
    settings = settings_for_tests(
        data_dir=tmp_path,
        database_url=database_url,
        model="openai/old-model",
        openai_api_key="key",
        openai_base_url=model.base_url,
    )
    app = create_app(settings, runtime=scripted_runtime(judges, FRANCE, data_folder=tmp_path / "kept"))
    async with running_app(app) as client:
        yield client


async def test_unknown_model_costs_one_request_and_pauses_only_its_jobs(
    api: httpx.AsyncClient, model: StandInLLM
) -> None:
    job_ids = await submit(api, answers=ANSWERS, model=f"openai/{MISTYPED}")
    paused = await wait_until_paused(api, job_ids)
    others = await submit(api, answers=ANSWERS[:2], model="openai/gpt-6-luna")
    done = [await wait_for_job(api, job_id) for job_id in others]

    assert len([call for call in model.calls if call.model == MISTYPED]) == 1
    assert {(job["status"], job["attempts"], job["error"]["code"]) for job in paused} == {("queued", 0, "LLM_REJECTED")}
    assert all("did you mean gpt-6-luna?" in job["error"]["detail"] for job in paused)
    assert all("ASSAY_MODEL" in job["error"]["detail"] for job in paused)
    assert {job["status"] for job in done} == {"succeeded"}
    assert await wait_until_paused(api, job_ids) == paused
