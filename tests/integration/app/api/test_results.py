from __future__ import annotations

import asyncio

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from judges.errors import JudgeBug
from tests.fakes.evaluating import ScriptedEvaluation
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

PAGE = "France is a country. Its capital is Paris. Paris is the capital of France."


def by_text(answer) -> float:
    return 1.0 if "Paris" in answer.text else 0.0


async def results(api: httpx.AsyncClient, **fields) -> list[dict]:
    jobs = [await wait_for_job(api, job_id) for job_id in await submit(api, **fields)]
    return [(await api.get(f"/v1/results/{job['result_id']}")).json() for job in jobs]


async def test_pipeline_result_matches_published_schema(open_api: OpenApi):
    """Native judge, lexical model and scripted pages: the whole pipeline except browser and network."""
    async with open_api(pages={"https://example.org/france": PAGE}) as api:
        text = "It is Paris ([source](https://example.org/france))."
        [result] = await results(api, answers=[{"name": "answer_1", "text": text}])
        schema = (await api.get("/v1/schema/result.json")).json()
        [page] = result["pages"]
        assert (await api.get(f"/v1/pages/{page['page_id']}/text")).text == PAGE
    Draft202012Validator(schema).validate(result)
    assert (result["status"], result["score"]["value"], result["final_score"]) == ("complete", 1.0, 1.0)
    assert (result["agent_name"], result["answer_name"], result["task_id"]) == ("demo", "answer_1.md", "capital")
    assert (result["model"], result["script"]["version"]) == ("lexical", "3")
    assert "lexical baseline" in result["notice"]
    leaves = {leaf["id"]: leaf for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]}
    assert leaves["paris"]["outcome"] == leaves["source"]["outcome"] == "passed"
    quote = leaves["source"]["quotes"][0]
    assert PAGE[quote["start"] : quote["end"]] == quote["text"]
    assert quote["page_id"] == page["page_id"]
    assert {"capture_s", "judge_s", "total_s"} <= result["timing"].keys()


async def test_job_pauses_and_names_missing_model_key(open_api: OpenApi):
    async with open_api() as api:
        [job_id] = await submit(api, model="azure/some-model")
        async with asyncio.timeout(240):
            while not (job := (await api.get(f"/v1/jobs/{job_id}")).json())["error"]:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.02)
    assert (job["status"], job["stage"], job["error"]["code"]) == ("queued", "paused", "MODEL_NOT_CONFIGURED")
    assert "AZURE_OPENAI_API_KEY" in job["error"]["detail"]


async def test_summary_uses_newest_result_and_counts_answers_without_result(open_api: OpenApi):
    answers = [{"name": "answer_1", "text": "It is Paris"}, {"name": "answer_2", "text": "It is not"}]
    evaluation = ScriptedEvaluation(score=by_text, error=lambda nth: JudgeBug("broken") if nth == 3 else None)
    async with open_api(evaluate=evaluation, max_answers=1) as api:
        assert_problem(await api.get("/v1/agents/demo/summary"), 404, "NOT_FOUND")
        await results(api, answers=[{"name": "answer_1", "text": "An earlier try"}])
        await results(api, answers=answers)
        await wait_for_job(api, (await submit(api, task_id="broken"))[0])
        summary = (await api.get("/v1/agents/demo/summary")).json()
        await results(api, agent="right")
        board = (await api.get("/v1/leaderboard")).json()
    assert summary["agent_name"] == "demo"
    assert (summary["avg_score"], summary["num_answers"]) == (0.5, 3)
    assert summary["not_judged"]["without_result"] == 1
    assert summary["without_result"] == [{"task_id": "broken", "answer_name": "answer_1.md", "error_code": "JUDGE_BUG"}]
    assert summary["tasks"]["capital"]["answers"][0]["word_count"] == 3
    assert [(row["agent_name"], row["avg_score"]) for row in board["items"]] == [("right", 1.0), ("demo", 0.5)]
    assert "tasks" not in board["items"][0]
