"""Judge of a run: its parameters, errors, retries and usage, against a stand-in model server over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

import mind2web2
from mind2web2 import (
    CacheFileSys,
    Capture,
    ContextLengthError,
    EvaluatorConfig,
    HarnessError,
    JudgeConfig,
    JudgeContentError,
    JudgeError,
    LLMClient,
    llm_client,
)
from mind2web2.eval_toolkit import TRUNCATION_MARKER, count_tokens
from mind2web2.llm_client import JudgeUsage
from mind2web2.llm_client.judge import answer_scope
from tests.compat.scripted import ScriptedClient, initialized_evaluator, outcomes
from tests.standin.call import Call
from tests.standin.faults import (
    OFF_SCHEMA,
    REFUSED,
    RESET,
    TOO_LONG,
    WRONG_KEY,
    Fault,
)
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

URL = "https://a.com/page"
ASK: dict[str, Any] = {"model": "my-model", "messages": [{"role": "user", "content": "Which city?"}]}


class City(BaseModel):
    name: str
    aliases: list[str] = Field(default_factory=lambda: ["none"])
    year: int | None = 1889


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandInLLM]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    extractions = {"City": {"name": "Paris"}}
    async with StandInLLM(extractions=extractions, rule=keyword_rule({"wrong": False})) as standin:
        yield standin


def client_of(server: StandInLLM, **options: Any) -> LLMClient:
    options = {"retry_seconds": 5.0, "retry_initial_delay": 0.001, **options}
    return LLMClient(is_async=True, base_url=server.base_url, **options)


class Subclass(LLMClient):
    pass


class Wrapper:
    def __init__(self, client: LLMClient) -> None:
        self._client = client

    async def async_response(self, **keywords: Any) -> Any:
        return await self._client.async_response(**keywords)


# Parameters


def test_limits_of_the_config_on_class_and_instance():
    expected = {
        "max_text_tokens": 100_000,
        "max_text_shrinks": 2,
        "image_max_width": 1100,
        "image_part_height": 2000,
        "image_part_overlap": 100,
        "image_max_parts": 5,
        "jpeg_quality": 85,
        "default_num_trials": 3,
        "default_majority_vote": True,
        "default_use_screenshot": True,
        "default_additional_instruction": "None",
    }
    assert EvaluatorConfig.as_dict() == EvaluatorConfig().as_dict() == expected
    assert {name: getattr(EvaluatorConfig, name) for name in expected} == expected


def test_public_names_and_classes():
    assert (llm_client.DEFAULT_JUDGE_MODEL, llm_client.DEFAULT_JUDGE_REASONING_EFFORT) == ("gpt-6-luna", "max")
    assert issubclass(JudgeError, RuntimeError)
    assert issubclass(JudgeContentError, JudgeError)
    assert issubclass(ContextLengthError, JudgeContentError)
    assert issubclass(HarnessError, JudgeError)
    assert not issubclass(HarnessError, JudgeContentError)
    for name in ("JudgeConfig", "JudgeError", "JudgeContentError", "ContextLengthError", "HarnessError"):
        assert getattr(mind2web2, name) is getattr(llm_client, name)


@pytest.mark.parametrize("is_async", [True, False])
async def test_judge_replaces_model_effort_and_temperature_of_a_script(server: StandInLLM, is_async: bool):
    judge = JudgeConfig("gpt-6-luna", temperature=0.3)
    client = LLMClient(is_async=is_async, judge=judge, base_url=server.base_url)
    asked = {**ASK, "temperature": 1.0, "reasoning_effort": "low", "seed": 7}
    await (client.async_response(**asked) if is_async else asyncio.to_thread(client.response, **asked))
    [call] = server.calls
    assert call.model == "gpt-6-luna"
    assert call.params == {"reasoning_effort": "max", "temperature": 0.3, "seed": 7}
    assert client.judge is judge


async def test_without_a_judge_requests_are_sent_as_given(server: StandInLLM):
    client = client_of(server)
    assert client.judge is None
    await client.async_response(**ASK, temperature=0.7)
    assert [(call.model, call.params) for call in server.calls] == [("my-model", {"temperature": 0.7})]


async def test_evaluator_uses_and_reports_the_judge_of_its_client(server: StandInLLM):
    e = initialized_evaluator(client_of(server, judge=JudgeConfig("the-judge")), default_model="o4-mini")
    assert await e.verify("it is right", e.add_leaf("a", "a"))
    await e.extract("Which city?", City)
    assert {(call.model, tuple(call.params)) for call in server.calls} == {("the-judge", ())}
    summary = e.get_summary()
    assert (summary["judge_model"], summary["extract_model"]) == ("the-judge", "the-judge")
    assert e.verifier.MODEL_NAME == e.extractor.MODEL_NAME == "the-judge"


# Retries


@pytest.mark.parametrize("fault", [RESET, Fault(status=429), Fault(status=503)])
async def test_transient_fault_is_retried(server: StandInLLM, fault: Fault):
    server.faults.extend([fault, fault])
    client = client_of(server)
    assert await client.async_response(**ASK, response_format=City) == City(name="Paris")
    assert len(server.calls) == 3
    assert (client.usage.requests, client.usage.failed_requests) == (1, 0)


# Content errors


@pytest.mark.parametrize("fault", [REFUSED, OFF_SCHEMA, Fault(status=400, code="content_filter")])
async def test_content_error_is_one_failed_vote_and_not_judged_in_ours(server: StandInLLM, fault: Fault):
    server.faults.extend([fault, None])  # the second and the third vote support the claim
    client = client_of(server)
    e = initialized_evaluator(client)
    assert await e.verify("it is right", e.add_leaf("a", "a"))
    assert len(server.calls) == 3
    [rejection] = client.usage.rejections
    assert (rejection["check"], rejection["url"]) == ("a", None)
    assert rejection["reason"]
    server.always = fault
    leaf = e.add_leaf("b", "b")
    assert not await e.verify("it is right", leaf)
    assert len(server.calls) == 5
    assert (leaf.status, leaf.score) == ("failed", 0.0)
    summary = e.get_summary()
    assert outcomes(summary) == {"a": ("passed", None), "b": ("not_judged", "llm_output_unusable")}
    assert (summary["final_score"], summary["score"]) == (0.5, {"value": None, "low": 0.5, "high": 1.0})
    assert [each["check"] for each in client.usage.rejections] == ["a", "b", "b"]
    with pytest.raises(JudgeContentError) as raised:
        await client.async_response(**ASK, response_format=City)
    assert type(raised.value) is JudgeContentError


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_reply_that_was_cut_is_a_content_error(server: StandInLLM, finish: str):
    server.always = Fault(finish_reason=finish)  # the text itself is complete
    with pytest.raises(JudgeContentError):
        await client_of(server).async_response(**ASK, max_tokens=3)
    assert len(server.calls) == 1


async def test_content_error_empties_an_extraction_and_the_answer_is_scored(server: StandInLLM):
    server.faults.append(REFUSED)
    client = client_of(server)
    e = initialized_evaluator(client)
    found = await e.extract("Which city?", City, "the city")
    assert (found.name, found.aliases, found.year) == (None, ["none"], 1889)
    assert [(each["check"], each["url"]) for each in client.usage.rejections] == [("the city", None)]
    assert await e.verify("it is right", e.add_leaf("a", "a"))
    summary = e.get_summary()
    assert (summary["final_score"], summary["status"]) == (1.0, "incomplete")
    assert summary["eval_breakdown"][0]["info"] == [{"the city": {"name": None, "aliases": ["none"], "year": 1889}}]


# Pages that are too long


def longer_than(limit: int) -> Any:
    def fault_for(call: Call) -> Fault | None:
        return TOO_LONG if len(call.page) > limit else None

    return fault_for


@pytest.fixture
def cache(tmp_path: Path) -> CacheFileSys:
    made = CacheFileSys(tmp_path)
    made.put_web(URL, "One sentence of the page.\n" * 400, None)
    return made


async def test_page_that_is_too_long_is_halved(server: StandInLLM, cache: CacheFileSys):
    whole = cache.get_web(URL)[0]
    server.fault_for = longer_than(len(whole) // 3)
    client = client_of(server)
    e = initialized_evaluator(client, cache)
    assert await e.verify("it is right", e.add_leaf("a", "a"), URL, num_trials=1)
    shown = [call.page for call in server.calls]
    assert len(shown) == 3
    assert whole.startswith(shown[0])
    tokens = [count_tokens(text.removesuffix(TRUNCATION_MARKER)) for text in shown]
    assert tokens == [tokens[0], tokens[0] // 2, tokens[0] // 4]
    assert all(text.endswith(TRUNCATION_MARKER) for text in shown[1:])
    assert client.usage.rejections == []
    assert outcomes(e.get_summary())["a"] == ("passed", None)


async def test_half_of_a_page_that_does_not_support_the_claim_fails_it_and_is_not_judged_in_ours(
    server: StandInLLM, cache: CacheFileSys
):
    server.fault_for = longer_than(8_000)
    e = initialized_evaluator(client_of(server), cache)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("it is wrong", leaf, URL)
    assert leaf.status == "failed"
    assert outcomes(e.get_summary())["a"] == ("not_judged", "llm_rejected")


# Permanent errors


async def test_judge_error_leaves_verify_extract_and_batch_verify_and_ends_all_requests(server: StandInLLM):
    server.always = WRONG_KEY
    e = initialized_evaluator(client_of(server))
    leaf = e.add_leaf("a", "a")
    with pytest.raises(JudgeError, match="401"):
        await e.verify("it is right", leaf)
    server.always = None
    with pytest.raises(JudgeError, match="401"):
        await e.extract("Which city?", City)
    with pytest.raises(JudgeError, match="401"):
        await e.batch_verify([("it is late", None, e.add_leaf("b", "b"), None)])
    # The second vote of the first claim may still be on its way when the first is rejected.
    assert [call.claim for call in server.calls] in (["it is right"], ["it is right"] * 2)
    assert e.get_summary()["score"] == {"value": None, "low": 0.0, "high": 1.0}


async def test_no_request_for_an_answer_after_a_judge_error_that_the_script_swallows(server: StandInLLM):
    server.faults.append(WRONG_KEY)
    client = client_of(server)
    with answer_scope() as scope:
        for _ in range(3):
            with pytest.raises(JudgeError):
                await client.async_response(**ASK)
        with pytest.raises(JudgeError):
            await initialized_evaluator(client).verify("it is right", None)
    assert len(server.calls) == 1
    assert (scope.usage.requests, scope.usage.failed_requests) == (1, 1)
    with pytest.raises(JudgeError, match="401"):
        scope.check()
    with answer_scope():  # the next answer
        await client.async_response(**ASK)


@pytest.mark.parametrize("client_for", [client_of, lambda server: Wrapper(client_of(server))], ids=["ours", "wrapper"])
async def test_what_a_script_decides_after_its_own_rejected_request_is_not_judged_in_ours(
    server: StandInLLM, client_for: Any
):
    client = client_for(server)
    with answer_scope():
        e = initialized_evaluator(client)
        e.add_custom_node(True, "before", "before")
        server.faults.append(REFUSED)  # a vote of the evaluator has its own consequences
        assert await e.verify("it is right", e.add_leaf("vote", "vote"))
        server.faults.append(REFUSED)
        with pytest.raises(JudgeContentError):
            await client.async_response(**ASK, response_format=City)
        e.add_custom_node(False, "after", "after")
        summary = e.get_summary()
    decided = {leaf: outcome for leaf, (outcome, _) in outcomes(summary).items()}
    assert decided == {"before": "passed", "vote": "passed", "after": "not_judged"}
    assert (summary["final_score"], summary["score"]["value"]) == (0.0, None)


# Harness


class BrokenCache:
    """Page cache of a user that cannot be read."""

    def has(self, url: str) -> str | None:
        raise OSError("broken")


class Browser:
    """Browser manager of a user, with the method of the present toolkit."""

    def __init__(self, outcome: Capture | Exception) -> None:
        self._outcome = outcome

    async def capture(self, url: str, logger: Any) -> Capture:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


PAGE = Capture(text="The page says so.", status=200, final_url=URL)


@pytest.mark.parametrize(
    ("made", "browser"),
    [
        (BrokenCache(), PAGE),
        (None, HarnessError("broken")),
    ],
)
async def test_unusable_cache_or_browser_is_a_harness_error_and_ends_page_loads(
    made: Any, browser: Capture | Exception
):
    client = ScriptedClient()
    e = initialized_evaluator(client, made, browser_manager=Browser(browser))
    leaf = e.add_leaf("a", "a")
    with pytest.raises(HarnessError, match="broken"):
        await e.verify("it is right", leaf, URL)
    with pytest.raises(HarnessError, match="broken"):
        await e.extractor.get_page_info("https://a.com/other")
    assert client.calls == []
    assert outcomes(e.get_summary())["a"] == ("not_judged", "capture_failed")


# Usage


@pytest.mark.parametrize(
    "client_for",
    [client_of, lambda server: Subclass(is_async=True, base_url=server.base_url), lambda s: Wrapper(client_of(s))],
    ids=["ours", "subclass", "wrapper"],
)
async def test_requests_of_an_answer_are_counted_once(server: StandInLLM, client_for: Any):
    with answer_scope() as scope:
        assert await initialized_evaluator(client_for(server)).verify("it is right", None)
    assert scope.usage.requests == len(server.calls) == 2
    assert scope.usage.input_tokens > 0
    assert sum(scope.usage.served_models.values()) == 2


async def test_usage_counts_tokens_and_served_models(server: StandInLLM):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    message = {"role": "assistant", "content": '{"name": "Paris"}'}
    reply = {"model": "served-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    server.always = Fault(raw_body=json.dumps(reply))
    client = client_of(server)
    with answer_scope() as scope:
        found, tokens = await client.async_response(**ASK, response_format=City, count_token=True)
        await client.async_response(**ASK, response_format=City)
    assert found == City(name="Paris")
    assert tokens == {
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "output_tokens": 30,
        "reasoning_tokens": 20,
        "served_model": "served-1",
    }
    expected = {
        "requests": 2,
        "failed_requests": 0,
        "input_tokens": 200,
        "cached_input_tokens": 80,
        "output_tokens": 60,
        "reasoning_tokens": 40,
        "served_models": {"served-1": 2},
        "rejections": [],
        "harness_failures": [],
    }
    assert client.usage.as_dict() == scope.usage.as_dict() == expected
    assert isinstance(client.usage, JudgeUsage)
