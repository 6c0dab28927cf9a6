"""Reply cache shared by two machines with one database and one bucket: the second machine reuses replies of the first.
Each machine has its own data directory. The model is a stand-in server over HTTP; the tests count its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.server.application import create_app
from app.storage.database import Database
from app.storage.reply_cache import cache_size
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import result_of, running_app, submit
from tests.standin.llm import StandInLLM
from tests.standin.s3 import moto_server

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
PAGE = "Paris is the capital of France. It lies on the Seine."
CLAIMS = {"capital": "Paris is the capital of France", "river": "Paris lies on the Seine"}
CALLS = 2 * len(CLAIMS)
REUSED = {"reused": True, "because": []}
JUDGE = f"""
from judges.registry import judge

@judge(task="paris", description="Tell of Paris.")
async def paris(ctx):
    for name, claim in {CLAIMS!r}.items():
        ctx.verify(name, claim, sources=[{URL!r}])
"""

Machine = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, Any]]:
    """Return the settings of a bucket that all machines can access."""
    keys = {"aws_access_key_id": SecretStr("test"), "aws_secret_access_key": SecretStr("test")}
    with moto_server() as endpoint:
        httpx.put(f"{endpoint}/evidence", trust_env=False).raise_for_status()
        yield {"blobs": "s3://evidence/of/all", "aws_endpoint_url": endpoint, "aws_region": "us-east-1", **keys}


@pytest.fixture
def machine(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM, bucket: dict[str, Any]) -> Machine:
    """Return a factory that starts the service on the machine with the given name."""
    (judges / "paris.py").write_text(JUDGE)

    @asynccontextmanager
    async def started(name: str, **overrides: Any) -> AsyncIterator[httpx.AsyncClient]:
        given = {"model": "openai/gpt-6-luna", "openai_base_url": model.base_url, **bucket} | overrides
        settings = settings_for_tests(data_dir=tmp_path / name, database_url=database_url, **given)
        app = create_app(settings, runtime=scripted_runtime(judges, {URL: PAGE}, data_folder=tmp_path / name))
        async with running_app(app) as client:
            yield client

    return started


async def judged(api: httpx.AsyncClient) -> dict[str, Any]:
    [job_id] = await submit(api, task_id="paris")
    return await result_of(api, job_id)


def rejudged(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [leaf["rejudged"] for leaf in result["eval_breakdown"][0]["verification_tree"]["children"]]


async def count_shared_replies(database: Database) -> int:
    async with database.begin() as connection:
        return (await cache_size(connection)).entries


async def test_resubmission_on_other_machine_costs_no_request(machine: Machine, model: StandInLLM, database: Database):
    async with machine("one") as api:
        first = await judged(api)
        async with asyncio.timeout(240):
            while await count_shared_replies(database) < CALLS:  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.02)
        assert f'event="stored"}} {CALLS}' in (await api.get("/metrics")).text
    assert len(model.calls) == first["usage"]["calls"] == CALLS
    async with machine("two") as api:
        second = await judged(api)
        assert f'event="found"}} {CALLS}' in (await api.get("/metrics")).text
        third = await judged(api)
    assert len(model.calls) == CALLS
    assert rejudged(second) == rejudged(third) == [REUSED] * len(CLAIMS)
    assert (second["usage"]["calls"], second["usage"]["cached_calls"]) == (0, CALLS)
    assert second["score"] == first["score"]
    assert second["rejudged"]["of"] == first["id"]


@pytest.mark.parametrize("overrides", [{"blobs": ""}, {"reply_cache_bytes": 0}], ids=["folder", "off"])
async def test_shared_cache_is_off_without_bucket_or_cache(
    machine: Machine, database: Database, overrides: dict[str, Any]
):
    async with machine("one", **overrides) as api:
        await judged(api)
        assert "assay_shared_replies_total{" not in (await api.get("/metrics")).text
    assert await count_shared_replies(database) == 0
