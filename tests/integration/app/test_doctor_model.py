"""``assay doctor`` on the configured model, with a stand-in server that lists models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from app.maintenance.doctor import Check, State, check_model
from tests.fakes.settings import settings_for_tests
from tests.standin.llm import StandInLLM

TODAY = datetime.now(UTC).date()


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM() as server:
        yield server


async def checked(server: StandInLLM, name: str) -> Check:
    return await check_model(settings_for_tests(model=name, openai_api_key="k", openai_base_url=server.base_url))


async def test_a_listed_model_is_fine_and_costs_no_request(model: StandInLLM) -> None:
    model.models = [{"id": "gpt-6-luna", "shutdown_date": None}]
    check = await checked(model, "openai/gpt-6-luna")
    assert (check.state, check.detail) == (State.OK, "openai/gpt-6-luna: listed by its provider, price known")
    assert not model.calls


async def test_a_model_that_is_not_listed_gets_a_suggestion(model: StandInLLM) -> None:
    model.models = [{"id": "gpt-6-luna"}, {"id": "qwen3-32b"}]
    check = await checked(model, "openai/qwen3-23b")
    assert check.state is State.WARNING
    assert "not among the 2 models" in check.detail
    assert "Did you mean qwen3-32b?" in check.remedy


@pytest.mark.parametrize(("days", "state"), [(60, State.WARNING), (61, State.OK), (0, State.FAILED)])
async def test_a_shutdown_is_warned_of_sixty_days_ahead(model: StandInLLM, days: int, state: State) -> None:
    model.models = [{"id": "mine", "shutdown_date": (TODAY + timedelta(days=days)).isoformat()}]
    check = await checked(model, "openai/mine")
    assert check.state is state
    if state is not State.OK:
        assert "ASSAY_MODEL" in check.remedy


async def test_a_server_without_a_list_is_no_fault(model: StandInLLM) -> None:
    check = await checked(model, "openai/mine")
    assert check.state is State.OK
    assert "lists no models, price unknown (set ASSAY_PRICES)" in check.detail


async def test_a_model_that_was_shut_down_by_the_table_fails(model: StandInLLM) -> None:
    check = await checked(model, "openai/o4-mini")
    assert (check.state, check.detail) == (State.FAILED, "openai/o4-mini was shut down on 2026-10-23")


async def test_the_judge_without_a_model_needs_none() -> None:
    check = await check_model(settings_for_tests())
    assert (check.state, check.detail) == (
        State.OK,
        "lexical: built in, compares words, needs no provider and costs nothing",
    )
