"""Task, pages and rollouts for tests of rewards, and a service with a stand-in model that verifies them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from app.server.application import create_app
from cache.capture import CaptureOutcome
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app
from tests.standin.call import Call

MODEL = "openai/gpt-4.1"
SITE = "https://velm.example"
PAGES: dict[str, str | CaptureOutcome] = {
    f"{SITE}/founded": "The Velm Institute was founded in 1931 by the harbor board.",
    f"{SITE}/director": "Ida Norrstad was the first director of the Velm Institute.",
    f"{SITE}/members": CaptureOutcome.LOGIN_WALL,
}
RUBRIC: dict[str, Any] = {
    "format": 1,
    "description": "When was the Velm Institute founded, and who was its first director?",
    "fields": {
        "year": "year of the founding",
        "director": "first director",
        "year_sources": {"list_of": "url"},
        "director_sources": {"list_of": "url"},
    },
    "rubric": {
        "parallel": {
            "founded": {"claim": "The Velm Institute was founded in {year}", "sources": "year_sources", "weight": 3},
            "director": {"claim": "{director} was the first director", "sources": "director_sources"},
        }
    },
}
_SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(\w[\w ]*) \((https?://[^)\s]+)\)")


def rollout(
    year: str = "1931", director: str = "Ida Norrstad", *, director_page: str = "director", note: str = ""
) -> str:
    return f"{note}Founded: {year} ({SITE}/founded)\n\nDirector: {director} ({SITE}/{director_page})\n"


def read_rollout(call: Call) -> Mapping[str, Any]:
    """Return the extracted values of a rollout: the reply of a model to the extraction."""
    [(year, founded), (director, page)] = _LINK.findall(call.block("answer"))
    return {"year": year, "director": director, "year_sources": [founded], "director_sources": [page]}


def is_on_page(call: Call) -> bool:
    return all(word in call.page for word in re.findall(r"\d+|[A-Z]\w+ [A-Z]\w+", call.claim))


@asynccontextmanager
async def open_verifier(
    database_url: str, folder: Path, *, pages: Mapping[str, str | CaptureOutcome] = PAGES, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Run a service whose captures are ``pages`` and whose reply cache is in ``folder``, and yield a client."""
    judges = folder / "judges"
    judges.mkdir(exist_ok=True)
    chosen = settings_for_tests(data_dir=folder / "data", database_url=database_url, **({"model": MODEL} | settings))
    app = create_app(chosen, workers=0, runtime=scripted_runtime(judges, pages, data_folder=folder))
    async with running_app(app) as client:
        yield client


def grpo_script() -> str:
    """Return the training script of docs/rewards.md."""
    [script] = _SCRIPT.findall((Path(__file__).resolve().parents[5] / "docs" / "rewards.md").read_text("utf-8"))
    return str(script)
