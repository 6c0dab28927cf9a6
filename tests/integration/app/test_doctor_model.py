"""Check of the configured model by ``assay admin doctor``, with a stand-in server that lists models."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.maintenance.doctor import Check, State, check_model
from tests.fakes.settings import settings_for_tests
from tests.standin.llm import StandInLLM


async def run_check(server: StandInLLM, name: str) -> Check:
    return await check_model(settings_for_tests(model=name, openai_api_key="k", openai_base_url=server.base_url))


async def test_listed_model_passes_without_a_request(model: StandInLLM) -> None:
    model.models = [{"id": "gpt-6-luna", "shutdown_date": None}]
    check = await run_check(model, "openai/gpt-6-luna")
    assert (check.state, check.detail) == (State.OK, "openai/gpt-6-luna: listed by its provider, price known")
    assert not model.calls


async def test_unlisted_model_gets_a_suggestion(model: StandInLLM) -> None:
    model.models = [{"id": "gpt-6-luna"}, {"id": "qwen3-32b"}]
    check = await run_check(model, "openai/qwen3-23b")
    assert check.state is State.WARNING
    assert "not among the 2 models" in check.detail
    assert "Did you mean qwen3-32b?" in check.remedy


@pytest.mark.parametrize(("days", "state"), [(60, State.WARNING), (61, State.OK), (0, State.FAILED)])
async def test_shutdown_within_sixty_days_is_a_warning(model: StandInLLM, days: int, state: State) -> None:
    model.models = [{"id": "mine", "shutdown_date": (datetime.now(UTC).date() + timedelta(days=days)).isoformat()}]
    check = await run_check(model, "openai/mine")
    assert check.state is state
    if state is not State.OK:
        assert "ASSAY_MODEL" in check.remedy
