"""Juries over HTTP: submissions, results and the result page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.engine.benches import write_bench
from app.server.application import create_app
from rubrics.result_fields import leaves_of
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import (
    assert_problem,
    result_of,
    running_app,
    submission_body,
    submit,
)
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
PAGE = "Paris is the capital of France. It lies on the Seine."
JUDGE = f"""
from judges.registry import judge

@judge(task="paris", description="Tell of Paris.")
async def paris(ctx):
    ctx.verify("capital", "Paris is the capital of France", sources=["{URL}"])
"""
MODELS = ["gpt-4.1", "openai/gpt-4o", "lexical"]
NAME = "gpt-4.1,gpt-4o,lexical"


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=lambda call: call.model == "gpt-4.1") as server:
        yield server


@pytest.fixture
async def api(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> AsyncIterator[httpx.AsyncClient]:
    (judges / "paris.py").write_text(JUDGE)
    settings = settings_for_tests(data_dir=tmp_path, database_url=database_url, openai_base_url=model.base_url)
    app = create_app(settings, runtime=scripted_runtime(judges, {URL: PAGE}, data_folder=tmp_path / "kept"))
    async with running_app(app) as client:
        yield client


async def result_by(api: httpx.AsyncClient, judge: str | list[str]) -> dict[str, Any]:
    [job_id] = await submit(api, task_id="paris", model=judge)
    return await result_of(api, job_id)


def votes(result: dict[str, Any]) -> dict[str, str]:
    [leaf] = leaves_of(result)
    return {member["model"]: member["outcome"] for member in leaf["jury"]}


async def test_jury_is_named_as_a_list_or_with_commas(api: httpx.AsyncClient, model: StandInLLM) -> None:
    listed = await result_by(api, MODELS)
    assert (listed["model"], listed["score"]["value"]) == (NAME, 1.0)
    assert votes(listed) == {"gpt-4.1": "passed", "gpt-4o": "failed", "lexical": "passed"}
    assert Counter(call.model for call in model.calls) == {"gpt-4.1": 2, "gpt-4o": 2}
    agreeing = await result_by(api, f"unanimity:{','.join(MODELS)}")
    assert (agreeing["model"], agreeing["score"]["value"]) == (f"unanimity:{NAME}", 0.0)
    assert len(model.calls) == 4, "the members were asked again"
    page = (await api.get(f"/results/{listed['id']}?leaf=capital")).text
    assert "2 of 3 yes: gpt-4.1 yes, gpt-4o no, lexical yes" in page
    assert "jury, majority" in page
    judges = (await api.get("/v1/agents/demo/summary")).json()["judges"]
    assert judges == {f"unanimity:{NAME}": 1}, "only the newest result of an answer counts"


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("gpt-4.1,gpt-4o", "odd number of members"),
        (["gpt-4.1", "openai/gpt-4.1", "lexical"], "twice"),
        (["gpt-4.1"], "2 to 9 members"),
        ("gpt-4.1,,lexical", "invalid model"),
    ],
)
async def test_invalid_juries_are_refused(api: httpx.AsyncClient, judge: str | list[str], message: str) -> None:
    response = await api.post("/v1/submissions", json=submission_body(task_id="paris", model=judge))
    problem = assert_problem(response, 422, "INVALID")
    [error] = problem["errors"]
    assert error["path"] == "model" and message in error["message"]


async def test_result_names_the_effective_votes_that_a_bench_measured(api: httpx.AsyncClient, tmp_path: Path) -> None:
    def row(rule: str, *members: str) -> dict[str, Any]:
        estimate = {"value": 2.2, "low": 2.0, "high": 2.4, "n": 50, "method": "m", "reason": None}
        named = [{"model": member, "run": None, "verdicts": "asked"} for member in members]
        figures = {"common": 50, "error_correlation": 0.18, "effective_votes": estimate}
        return {"set": f"{rule} set", "jury": {"rule": rule, "members": named, **figures}}

    rows = [
        row("majority", "lexical/lexical", "openai/gpt-4o", "openai/gpt-4.1"),
        row("unanimity", "openai/gpt-4o", "openai/gpt-4.1"),
        {"set": "majority set", "jury": None},
    ]
    document = {"bench_version": 1, "id": "bench_1", "created_at": datetime.now(UTC).isoformat(), "rows": rows}
    write_bench(document | {"rule": "partial=failed", "sample": None, "sets": []}, tmp_path)
    result = await result_by(api, MODELS)
    measured = result["judge"]["jury"]["measured"]
    assert [one["set"] for one in measured["sets"]] == ["majority set"]
    assert (measured["bench"], measured["sets"][0]["error_correlation"]) == ("bench_1", 0.18)
    assert "worth 2.2 independent votes on majority set" in (await api.get(f"/results/{result['id']}")).text
    alone = await result_by(api, f"unanimity:{','.join(MODELS)}")
    assert alone["judge"]["jury"]["measured"] is None
    assert json.dumps(alone["certification"]).count("Certificates are for single models") == 1
