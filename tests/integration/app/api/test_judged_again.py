"""What is paid for once is not paid for again: retried, resubmitted, and judged by a changed judge file.

The model is a stand-in server asked over HTTP, and its calls are counted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.main import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.asking import ended, submit
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
PAGE = "Paris is the capital of France. It lies on the Seine. It has twenty districts."
CLAIMS = {
    "capital": "Paris is the capital of France",
    "river": "Paris lies on the Seine",
    "districts": "Paris has twenty districts",
}
LOST = {CLAIMS["river"], CLAIMS["districts"]}
TRIES, VOTES = 5, 2

Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


def judge_file(**claims: str) -> str:
    lines = [f"    ctx.verify({name!r}, {claim!r}, sources=[{URL!r}])" for name, claim in claims.items()]
    return "\n".join(
        [
            "from judges.registry import judge",
            "@judge(task='paris', description='Tell of Paris.')",
            "async def paris(ctx):",
            *lines,
        ]
    )


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as server:
        yield server


@pytest.fixture
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Start:
    """Starts the service with a judge of these claims; all starts share the database and the disk."""

    @asynccontextmanager
    async def started(**claims: str) -> AsyncIterator[httpx.AsyncClient]:
        (judges / "paris.py").write_text(judge_file(**claims))
        settings = settings_for_tests(
            data_dir=tmp_path, database_url=database_url, model="openai/o4-mini", openai_base_url=model.base_url
        )
        app = create_app(settings, runtime=scripted_runtime(judges, {URL: PAGE}, kept=tmp_path / "kept"))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000") as client,
        ):
            yield client

    return started


async def result_of(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    job = await ended(api, job_id)
    assert job["status"] == "succeeded", job
    result: dict[str, Any] = (await api.get(f"/v1/results/{job['result_id']}")).json()
    return result


async def judged(api: httpx.AsyncClient) -> dict[str, Any]:
    [job_id] = await submit(api, task_id="paris")
    return await result_of(api, job_id)


def leaves(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {leaf["claim"]: leaf for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]}


def lose(call: Call) -> Fault | None:
    return Fault(status=500) if call.claim in LOST else None


async def test_a_retry_of_an_incomplete_result_asks_only_for_what_is_missing(start: Start, model: StandInLLM):
    model.fault_for = lose
    async with start(**CLAIMS) as api:
        [job_id] = await submit(api, task_id="paris")
        first = await result_of(api, job_id)
        assert first["status"] == "incomplete"
        assert {claim for claim, leaf in leaves(first).items() if leaf["outcome"] == "not_judged"} == LOST
        assert len(model.calls) == VOTES + len(LOST) * VOTES * TRIES

        model.fault_for = None
        model.calls.clear()
        await api.post(f"/v1/jobs/{job_id}/retry")
        second = await result_of(api, job_id)
    assert sorted(call.claim for call in model.calls) == sorted([*LOST] * VOTES)
    assert (second["status"], second["score"]["value"]) == ("complete", 1.0)
    assert second["id"] != first["id"]
    cached = {claim: [vote["cached"] for vote in leaf["votes"]] for claim, leaf in leaves(second).items()}
    assert cached == {claim: [claim not in LOST] * VOTES for claim in CLAIMS.values()}
    assert (second["usage"]["calls"], second["usage"]["cached_calls"]) == (len(LOST) * VOTES, VOTES)


async def test_an_unchanged_answer_handed_in_again_costs_no_call_even_after_a_restart(start: Start, model: StandInLLM):
    async with start(**CLAIMS) as api:
        first = await judged(api)
    calls = len(model.calls)
    async with start(**CLAIMS) as api:
        second = await judged(api)
    assert (calls, len(model.calls)) == (len(CLAIMS) * VOTES, len(CLAIMS) * VOTES)
    assert (first["usage"]["cached_calls"], second["usage"]["calls"]) == (0, 0)
    assert second["usage"]["cached_calls"] == calls
    assert second["usage"]["usd"] == 0
    assert second["score"] == first["score"]


async def test_a_changed_claim_pays_for_itself_alone(start: Start, model: StandInLLM):
    async with start(**CLAIMS) as api:
        await judged(api)
    model.calls.clear()
    changed = "Paris lies on the river Seine"
    async with start(**{**CLAIMS, "river": changed}) as api:
        result = await judged(api)
    assert [call.claim for call in model.calls] == [changed] * VOTES
    assert (result["usage"]["calls"], result["usage"]["cached_calls"]) == (VOTES, VOTES * 2)
