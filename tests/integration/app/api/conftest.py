"""The web application over ASGI on a real database. Judging is scripted unless a test overrides it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.jobs.execution import EvaluateJob
from app.server.application import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app

JUDGE = """
from judges.registry import judge

@judge(task="capital", description="Name the capital of France.", version="3")
async def capital(ctx):
    ctx.check("paris", "Paris" in ctx.answer.text)
    ctx.verify("source", "Paris is the capital of France", sources=["https://example.org/france"])
"""

OpenApi = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    folder = tmp_path / "judges"
    folder.mkdir()
    (folder / "capital.py").write_text(JUDGE)
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    return folder


@pytest.fixture
def open_api(database_url: str, judges: Path, tmp_path: Path) -> OpenApi:
    """Return a factory that starts the application with the given settings and yields a client."""

    @asynccontextmanager
    async def opened(
        *,
        workers: int = 1,
        evaluate: EvaluateJob | None = None,
        pages: dict[str, str] | None = None,
        base_url: str = "http://127.0.0.1:8000",
        **settings: Any,
    ) -> AsyncIterator[httpx.AsyncClient]:
        chosen = settings_for_tests(data_dir=tmp_path / "data", database_url=database_url, **settings)
        app = create_app(chosen, workers=workers, runtime=scripted_runtime(judges, pages), evaluate=evaluate)
        async with running_app(app, base_url=base_url) as client:
            yield client

    return opened


@pytest.fixture
async def api(open_api: OpenApi) -> AsyncIterator[httpx.AsyncClient]:
    """Service without a worker."""
    async with open_api(workers=0) as client:
        yield client


@pytest.fixture
async def working_api(open_api: OpenApi) -> AsyncIterator[httpx.AsyncClient]:
    """Service whose worker passes every answer."""
    async with open_api(evaluate=ScriptedEvaluation()) as client:
        yield client
