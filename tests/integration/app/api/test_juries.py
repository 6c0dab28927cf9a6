"""Juries over HTTP: submissions, results and the result page."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from rubrics.result_json import leaves_of
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import (
    result_of,
    running_app,
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
    named = await result_by(api, ",".join(MODELS))
    assert (named["model"], named["score"]["value"]) == (NAME, 1.0)
    assert len(model.calls) == 4, "the members were asked again"
    page = (await api.get(f"/results/{listed['id']}?leaf=capital")).text
    assert "2 of 3 yes: gpt-4.1 yes, gpt-4o no, lexical yes" in page
    assert "jury</span>" in page
    judges = (await api.get("/v1/agents/demo/summary")).json()["judges"]
    assert judges == {NAME: 1}, "only the newest result of an answer counts"
