"""A service with a stand-in model, on a port of its own, for adapters that call it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.integration.app.features.rewards.rollouts import MODEL, PAGES, is_on_page, read_rollout
from tests.standin.llm import StandInLLM


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=is_on_page, extractions={"Values": read_rollout}) as server:
        yield server


@pytest.fixture
async def verifier_url(database_url: str, tmp_path: Path, model: StandInLLM) -> AsyncIterator[str]:
    (tmp_path / "judges").mkdir()
    settings = settings_for_tests(
        data_dir=tmp_path / "data",
        database_url=database_url,
        model=MODEL,
        openai_base_url=model.base_url,
        openai_api_key="key",
    )
    app = create_app(settings, workers=0, runtime=scripted_runtime(tmp_path / "judges", PAGES, data_folder=tmp_path))
    serving = served(app)
    url = await asyncio.to_thread(serving.__enter__)
    try:
        yield url
    finally:
        await asyncio.to_thread(serving.__exit__, None, None, None)
