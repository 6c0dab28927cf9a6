"""Reuse of replies: retried jobs, repeated submissions, and changed task files. The model is a stand-in server over
HTTP; the tests count its calls."""

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
from tests.integration.app.api.api_calls import result_of, running_app, submit
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
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Start:
    """Return a factory that starts the service with a judge of these claims. All instances share database and disk."""

    @asynccontextmanager
    async def started(
        *,
        pages: dict[str, str] | None = None,
        asks: str = "openai/gpt-6-luna",
        replies: int | None = None,
        **claims: str,
    ) -> AsyncIterator[httpx.AsyncClient]:
        (judges / "paris.py").write_text(judge_file(**claims))
        bound = {} if replies is None else {"reply_cache_bytes": replies}
        settings = settings_for_tests(
            data_dir=tmp_path, database_url=database_url, model=asks, openai_base_url=model.base_url, **bound
        )
        runtime = scripted_runtime(judges, pages or {URL: PAGE}, data_folder=tmp_path / "kept")
        app = create_app(settings, runtime=runtime)
        async with running_app(app) as client:
            yield client

    return started


async def judged(api: httpx.AsyncClient) -> dict[str, Any]:
    [job_id] = await submit(api, task_id="paris")
    return await result_of(api, job_id)


def leaves(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {leaf["claim"]: leaf for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]}


def fail_lost_claims(call: Call) -> Fault | None:
    return Fault(status=500) if call.claim in LOST else None


async def test_retry_of_incomplete_result_requests_only_missing_verdicts(start: Start, model: StandInLLM):
    model.fault_for = fail_lost_claims
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


async def test_changed_claim_costs_only_its_own_requests(start: Start, model: StandInLLM):
    async with start(**CLAIMS) as api:
        await judged(api)
    model.calls.clear()
    changed = "Paris lies on the river Seine"
    async with start(**{**CLAIMS, "river": changed}) as api:
        result = await judged(api)
    assert [call.claim for call in model.calls] == [changed] * VOTES
    assert (result["usage"]["calls"], result["usage"]["cached_calls"]) == (VOTES, VOTES * 2)


def again(*because: str) -> dict[str, Any]:
    return {"reused": False, "because": list(because)}
