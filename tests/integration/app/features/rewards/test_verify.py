"""Rewards over HTTP, with the pipeline, a database and a stand-in model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.storage.database import Database
from app.storage.idempotency import IdempotencyKey, store_response
from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.features.rewards.rollouts import (
    RUBRIC,
    open_verifier,
    rollout,
)
from tests.standin.faults import WRONG_KEY, Fault
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

OpenVerifier = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def verifier(database_url: str, tmp_path: Path, model: StandInLLM) -> OpenVerifier:
    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
        of_model: dict[str, Any] = {"openai_base_url": model.base_url, "openai_api_key": "key"}
        async with open_verifier(database_url, tmp_path, **of_model, **settings) as client:
            yield client

    return opened


async def verify(api: httpx.AsyncClient, answer: str | None = None, **fields: Any) -> dict[str, Any]:
    body = {"rubric": RUBRIC, **({} if answer is None else {"answer": answer}), **fields}
    response = await api.post("/v1/verify", json=body)
    assert response.status_code == 200, response.text
    reward: dict[str, Any] = response.json()
    return reward


async def metric(api: httpx.AsyncClient, sample: str, **labels: str) -> float:
    text = (await api.get("/metrics")).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return sum(each.value for each in samples if each.name == sample and labels.items() <= each.labels.items())


async def test_reward_is_the_weighted_score_with_its_leaves(verifier: OpenVerifier) -> None:
    async with verifier() as api:
        good, half = await verify(api, rollout()), await verify(api, rollout(director="Tobias Quell"))

    assert (good["reward"], good["mask"], good["mask_reason"]) == (1.0, False, None)
    assert (half["reward"], half["mask"], half["bounds"]) == (0.75, False, {"low": 0.75, "high": 0.75})
    assert [(leaf["id"], leaf["weight"], leaf["score"], leaf["reason"]) for leaf in half["components"]] == [
        ("founded", 3.0, 1.0, None),
        ("director", 1.0, 0.0, "refuted"),
    ]
    assert half["cost"]["calls"] > 0
    assert half["cost"]["usd"] > 0
    assert half["timing"]["total_s"] >= half["timing"]["model_s"] > 0
    assert half["pages"] == {"total": 2, "unreadable": 0}
    assert (half["task_id"], len(half["judge_sha256"])) == ("inline", 64)


async def test_last_assistant_message_is_the_answer(verifier: OpenVerifier) -> None:
    messages = [
        {"role": "user", "content": "When was it founded?"},
        {"role": "assistant", "content": "Let me search.", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "1931"},
        {"role": "assistant", "content": [{"type": "text", "text": rollout()}]},
        {"role": "user", "content": "Thank you"},
    ]
    async with verifier() as api:
        of_messages, of_text = await verify(api, messages=messages), await verify(api, rollout())
        unanswered = await api.post("/v1/verify", json={"rubric": RUBRIC, "messages": messages[:1]})

    assert of_messages == of_text
    assert_problem(unanswered, 422, "INVALID")


async def test_supported_claim_without_a_quote_lowers_only_the_strict_score(
    verifier: OpenVerifier, model: StandInLLM
) -> None:
    model.quotes = lambda call: ["Norrstad led the harbor board of the city for years"]
    async with verifier() as api:
        compatible, strict = await verify(api, rollout()), await verify(api, rollout(), score="strict")
        sums = [await metric(api, "assay_reward_sum", score=kind) for kind in ("compatible", "strict")]

    assert (compatible["reward"], strict["reward"]) == (1.0, 0.0)
    assert compatible["scores"] == strict["scores"]
    assert strict["scores"]["strict"]["value"] == 0.0
    assert {(leaf["score"], leaf["score_strict"]) for leaf in strict["components"]} == {(1.0, 0.0)}
    assert sums == [2.0, 0.0]


async def test_equal_requests_get_equal_bytes_for_one_verification(verifier: OpenVerifier, model: StandInLLM) -> None:
    model.delay_s = 0.05
    body = {"rubric": RUBRIC, "answer": rollout()}
    async with verifier() as api:
        at_once = await asyncio.gather(*(api.post("/v1/verify", json=body) for _ in range(8)))
        calls = len(model.calls)
        later = await api.post("/v1/verify", json=dict(reversed(body.items())))
    async with verifier() as restarted:
        after_restart = await restarted.post("/v1/verify", json=body)

    assert len({response.content for response in (*at_once, later, after_restart)}) == 1
    assert at_once[0].json()["reward"] == 1.0
    assert len(model.calls) == calls == 5  # one extraction, and two votes on each of two claims


async def test_rollouts_of_a_prompt_share_verdicts_of_equal_claims(verifier: OpenVerifier, model: StandInLLM) -> None:
    async with verifier() as api:
        await verify(api, rollout(note="A first rollout. "))
        before = len(model.calls)
        second = await verify(api, rollout(note="Another rollout, with the same claims. "))
        shared = len(model.calls) - before
        await verify(api, rollout(note="A third one. "), share_claims=False)

    assert shared == 1  # only the extraction
    assert (second["reward"], second["cost"]["calls"], second["cost"]["cached_calls"]) == (1.0, 1, 4)
    assert len(model.calls) - before - shared == 5
    pages = [call for call in model.calls if call.page]
    assert [bool(call.block("answer")) for call in pages] == [False] * 4 + [True] * 4


async def test_verdict_with_a_lost_vote_is_not_shared(verifier: OpenVerifier, model: StandInLLM) -> None:
    async with verifier() as api:
        model.fault_for = lambda call: Fault(content="no JSON") if call.page else None
        lost = await verify(api, rollout(note="First. "))
        model.fault_for = lambda call: None
        found = await verify(api, rollout(note="Second. "))

    assert (lost["reward"], lost["mask_reason"]) == (None, "model_output")
    assert (found["reward"], found["mask"]) == (1.0, False)


async def test_outage_of_the_model_masks_every_reward_and_recovers(verifier: OpenVerifier, model: StandInLLM) -> None:
    model.always = Fault(status=503)
    answers = [rollout(note=f"Rollout {number}. ") for number in range(12)]
    async with verifier() as api:
        down = await asyncio.gather(*(verify(api, answer) for answer in answers))
        masked = await metric(api, "assay_verifications_total", outcome="masked", reason="model_unavailable")
        model.always = None
        up = await asyncio.gather(*(verify(api, answer) for answer in answers))

    assert {(each["reward"], each["mask"], each["mask_reason"]) for each in down} == {(None, True, "model_unavailable")}
    assert {(each["bounds"]["low"], each["bounds"]["high"]) for each in down} == {(0.0, 1.0)}
    assert masked == 12
    assert {(each["reward"], each["mask"]) for each in up} == {(1.0, False)}


async def test_rejected_key_and_unusable_replies_are_masked(verifier: OpenVerifier, model: StandInLLM) -> None:
    async with verifier() as api:
        model.fault_for = lambda call: Fault(content="no JSON") if call.page else None
        unusable = await verify(api, rollout())
        model.fault_for = lambda call: WRONG_KEY
        rejected, again = await verify(api, rollout(note="New. ")), await verify(api, rollout(note="Newer. "))

    assert (unusable["reward"], unusable["mask_reason"]) == (None, "model_output")
    assert (rejected["reward"], rejected["mask_reason"]) == (None, "model_unavailable")
    assert (again["reward"], again["mask_reason"]) == (None, "model_unavailable")
    assert "401" in rejected["mask_detail"]
    assert "401" in again["mask_detail"]  # of the circuit breaker: not sent


async def test_walls_above_the_share_mask_the_reward(verifier: OpenVerifier) -> None:
    answer = rollout(director_page="members")
    async with verifier() as api:
        masked = await verify(api, answer)
        tolerated = await verify(api, answer, max_unreadable_share=0.5)
        gone = await verify(api, rollout(director_page="nowhere"))

    assert (masked["reward"], masked["mask_reason"]) == (None, "pages_unreadable")
    assert masked["pages"] == {"total": 2, "unreadable": 1}
    assert (tolerated["reward"], tolerated["mask"]) == (0.875, False)  # the middle of the bounds
    assert tolerated["bounds"] == {"low": 0.75, "high": 1.0}
    assert tolerated["components"][1]["reason"] == "capture_blocked"
    assert (gone["reward"], gone["components"][1]["reason"]) == (0.75, "source_gone")


async def test_deadline_masks_the_reward(verifier: OpenVerifier, model: StandInLLM) -> None:
    async with verifier() as api:
        in_time = await verify(api, rollout(), deadline_s=120)
        model.delay_s = 600.0
        unread = await verify(api, rollout(note="Slow. "), deadline_s=0.5)
        model.delay_s, model.fault_for = 0.0, lambda call: Fault(delay_s=600.0) if call.page else None
        unjudged = await verify(api, rollout(year="1932"), deadline_s=2)

    assert in_time["reward"] == 1.0
    assert {(each["reward"], each["mask"], each["mask_reason"]) for each in (unread, unjudged)} == {
        (None, True, "deadline")
    }


async def test_exhausted_budget_masks_the_reward(verifier: OpenVerifier, model: StandInLLM) -> None:
    async with verifier(budget_usd=0.0001) as api:
        installation = await verify(api, rollout())
    async with verifier() as api:
        own = await verify(api, rollout(), budget_usd=0.0000001)
        async with asyncio.timeout(30):
            while "verify" not in (await api.get("/v1/usage")).text:  # noqa: ASYNC110 - written in the background
                await asyncio.sleep(0.05)

    assert (installation["reward"], installation["mask_reason"]) == (None, "budget")
    assert (own["reward"], own["mask_reason"]) == (None, "budget")


async def test_batch_returns_rewards_in_order(verifier: OpenVerifier) -> None:
    answers = [rollout(), rollout(director="Tobias Quell"), rollout(director_page="members"), rollout()]
    items = [{"rubric": RUBRIC, "answer": answer} for answer in answers]
    async with verifier() as api:
        response = await api.post("/v1/verify", json={"items": items, "deadline_s": 60})
        too_many = await api.post("/v1/verify", json={"items": [items[0]] * 1001})
        broken = [items[0], {**items[0], "rubric": {**RUBRIC, "format": 2}}]
        invalid = await api.post("/v1/verify", json={"items": broken})
        mixed = await api.post("/v1/verify", json={"items": items, "answer": rollout()})

    assert [item["reward"] for item in response.json()["items"]] == [1.0, 0.75, None, 1.0]
    assert response.json()["items"][0] == response.json()["items"][3]
    assert_problem(too_many, 422, "INVALID")
    assert_problem(invalid, 422, "INVALID")
    assert invalid.json()["errors"][0]["path"] == "items.1.rubric.format"
    assert_problem(mixed, 422, "INVALID")


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        ({"task_id": "nothing", "answer": "x"}, 404, "task_id"),
        ({"answer": "x"}, 422, ""),
        ({"rubric": RUBRIC}, 422, ""),
        ({"rubric": RUBRIC, "task_id": "capital", "answer": "x"}, 422, ""),
        ({"rubric": {**RUBRIC, "fields": {"class": "x"}}, "answer": "x"}, 422, "rubric.rubric"),
        ({"rubric": {"format": 1}, "answer": "x"}, 422, "rubric"),
        ({"rubric": RUBRIC, "answer": "x", "deadline_s": 0}, 422, "deadline_s"),
        ({"rubric": RUBRIC, "answer": "  "}, 422, "answer"),
    ],
)
async def test_invalid_request_names_the_field(
    verifier: OpenVerifier, body: dict[str, Any], status: int, path: str
) -> None:
    async with verifier() as api:
        response = await api.post("/v1/verify", json=body)

    assert_problem(response, status)
    assert any(error["path"].startswith(path) for error in response.json()["errors"])


async def test_catalogue_tasks_run_as_task_files_and_in_python(verifier: OpenVerifier, tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "velm.yaml").write_text(json.dumps(RUBRIC))
    (tmp_path / "judges" / "length.py").write_text(
        "from judges.registry import judge\n"
        '@judge(task="length", description="Write much.")\n'
        "async def length(ctx):\n"
        '    ctx.check("long", len(ctx.answer.text) > 20)\n'
    )
    (tmp_path / "judges" / "wrong.yaml").write_text("format: 1\n")
    async with verifier() as api:
        responses = [
            await api.post("/v1/verify", json={"task_id": task, "answer": rollout()})
            for task in ("velm", "length", "wrong")
        ]
        (tmp_path / "judges" / "wrong.yaml").write_text(json.dumps(RUBRIC))
        repaired = await api.post("/v1/verify", json={"task_id": "wrong", "answer": rollout()})

    assert [response.json().get("reward") for response in responses] == [1.0, 1.0, None]
    assert responses[0].json()["task_id"] == "velm"
    assert_problem(responses[2], 409, "JUDGE_BROKEN")
    assert repaired.json()["reward"] == 1.0


async def test_changed_task_is_verified_again(verifier: OpenVerifier) -> None:
    nodes = RUBRIC["rubric"]["parallel"]
    stricter = {**RUBRIC, "rubric": {"parallel": {**nodes, "director": {**nodes["director"], "weight": 3}}}}
    answer = rollout(director="Tobias Quell")
    async with verifier() as api:
        before, after = await verify(api, answer), await verify(api, answer, rubric=stricter)

    assert (before["reward"], after["reward"]) == (0.75, 0.5)


async def test_expired_responses_are_removed(verifier: OpenVerifier, database: Database) -> None:
    async with verifier() as api:
        await verify(api, rollout())
    client_key = IdempotencyKey(owner="local", key="a client's", fingerprint="f")
    async with database.pooled_connection() as connection:
        await connection.execute("UPDATE idempotency_keys SET created_at = created_at - interval '2 hours'")
        await store_response(connection, client_key, "{}", now=datetime(2020, 1, 1, tzinfo=UTC))
    async with verifier() as api:
        await verify(api, rollout(director="Tobias Quell"))
    async with database.pooled_connection() as connection:
        rows = await (await connection.execute("SELECT left(key, 7) FROM idempotency_keys ORDER BY key")).fetchall()

    assert sorted(key for (key,) in rows) == [" verify", "a clien"]


async def test_owners_do_not_share_responses(verifier: OpenVerifier) -> None:
    keys = {"otter": "0b9ad5f2c1e84736a5d0", "heron": "77c3e1f0492bd86a1e5c"}
    async with verifier(api_keys=",".join(f"{owner}:submit:{key}" for owner, key in keys.items())) as api:
        found = [
            await api.post(
                "/v1/verify",
                json={"rubric": RUBRIC, "answer": rollout()},
                headers={"Authorization": f"Bearer {key}"},
            )
            for key in keys.values()
        ]
        unknown = await api.post("/v1/verify", json={"rubric": RUBRIC, "answer": rollout()})

    assert [response.json()["reward"] for response in found] == [1.0, 1.0]
    assert found[0].content != found[1].content
    assert_problem(unknown, 401)


async def test_unconfigured_model_is_an_error_and_not_a_reward(database_url: str, tmp_path: Path) -> None:
    async with open_verifier(database_url, tmp_path) as api:
        response = await api.post("/v1/verify", json={"rubric": RUBRIC, "answer": rollout()})

    assert_problem(response, 422, "INVALID")
