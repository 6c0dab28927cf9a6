"""Attack: a tenant changes the evidence, and with it the score, of another tenant, or uses controls that all share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.api import access
from app.server import application
from tests.integration.app.api.api_calls import FINAL_STATUSES, assert_problem, submission_body
from tests.integration.app.api.conftest import OpenApi, judges, open_api  # noqa: F401 - fixtures
from tests.integration.app.conftest import (  # noqa: F401 - fixtures
    database_url,
    patient_database_clients,
    postgres_url,
)

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
FORGED = b"<!doctype html><title>France</title><p>Paris is the capital of France, as it has been for long."
KEYS = {
    "otter": "otter:submit:0b9ad5f2c1e84736a5d0",
    "heron": "heron:submit:77c3e1f0492bd86a1e5c",
    "operator": "operator:admin:e94d2b7f60a8513cc04e",
}


class Tenant:
    """API client of one owner."""

    def __init__(self, api: httpx.AsyncClient, entry: str) -> None:
        self._api = api
        self._headers = {"Authorization": f"Bearer {entry.rpartition(':')[2]}"}

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = self._headers | options.pop("headers", {})
        return await self._api.request(method, path, headers=headers, **options)

    async def judge(self, *, agent: str = "demo") -> dict[str, Any]:
        """Judge an answer that cites the page, and return the result."""
        answers = [{"name": "answer_1", "text": f"It is Paris, see [France]({URL})."}]
        body = submission_body(agent=agent, answers=answers, run="nightly")
        accepted = await self.call("POST", "/v1/submissions", json=body)
        [job] = accepted.json()["jobs"]
        while job["status"] not in FINAL_STATUSES:
            job = (await self.call("GET", f"/v1/jobs/{job['id']}")).json()
        result: dict[str, Any] = (await self.call("GET", f"/v1/results/{job['result_id']}")).json()
        return result

    async def upload(self, page_id: str) -> httpx.Response:
        headers = {"Content-Type": "text/html"}
        return await self.call("PUT", f"/v1/pages/{page_id}/content", content=FORGED, headers=headers)

    async def change(self, **fields: Any) -> httpx.Response:
        return await self.call("POST", "/v1/pages/changes", json={"url": URL, **fields})

    async def cited(self) -> dict[str, Any]:
        """Return the URL in the tenant's list of cited URLs."""
        listed = (await self.call("GET", "/v1/pages/urls", params={"url": URL})).json()["items"]
        [found] = listed
        cited: dict[str, Any] = found
        return cited


@pytest.fixture
async def api(open_api: OpenApi) -> AsyncIterator[httpx.AsyncClient]:  # noqa: F811 - the imported fixture
    async with open_api(api_keys=",".join(KEYS.values())) as client:
        yield client


def page_of(result: dict[str, Any]) -> dict[str, Any]:
    [page] = result["pages"]
    found: dict[str, Any] = page
    return found


async def test_upload_changes_only_the_scores_of_its_owner(api: httpx.AsyncClient):
    otter, heron = Tenant(api, KEYS["otter"]), Tenant(api, KEYS["heron"])
    honest, lost = await otter.judge(), await heron.judge()
    assert honest["score"] == lost["score"]
    assert honest["score"]["value"] != 1.0
    uploaded = await heron.upload(page_of(lost)["page_id"])
    assert (uploaded.status_code, uploaded.json()["owner"]) == (201, "heron")
    forged, again = await heron.judge(), await otter.judge()
    assert forged["score"]["value"] == 1.0
    assert again["score"] == honest["score"]
    assert (page_of(forged)["source"], page_of(forged)["owner"]) == ("upload", "heron")
    assert (page_of(again)["page_id"], page_of(again)["owner"]) == (page_of(honest)["page_id"], None)


async def test_page_change_affects_only_its_owner(api: httpx.AsyncClient):
    otter, heron = Tenant(api, KEYS["otter"]), Tenant(api, KEYS["heron"])
    await heron.judge()
    await otter.judge()
    before = await otter.cited()
    changed = await heron.change(action="flag")
    assert changed.status_code == 201, changed.text
    assert await otter.cited() == before
    assert await heron.cited() != before
    assert (await otter.call("GET", "/v1/pages/changes")).json()["items"] == []
    assert_problem(await otter.call("POST", f"/v1/pages/changes/{changed.json()['id']}/undo"), 404)


SHARED_CONTROLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("GET", "/metrics", {}),
    ("POST", "/v1/providers/openai/pause", {"json": {"reason": "mine"}}),
    ("POST", "/v1/providers/openai/resume", {}),
)


async def test_shared_controls_need_the_scope_of_operators(api: httpx.AsyncClient):
    for method, path, options in SHARED_CONTROLS:
        assert_problem(await Tenant(api, KEYS["otter"]).call(method, path, **options), 403, "SCOPE")
        assert (await Tenant(api, KEYS["operator"]).call(method, path, **options)).status_code == 200


OPEN_TO_ALL = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/v1/schema/check.json"),
    ("GET", "/v1/schema/result.json"),
}
CHECKS = {
    get_args(dependency)[1].dependency for dependency in (access.ReaderDep, access.SubmitterDep, access.OperatorDep)
}


def test_every_route_of_the_api_checks_a_key_or_is_listed():
    """The pages of the dashboard call these routes with the key of the session."""
    routes = [route for router in application.ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 40
    unchecked = {
        (method, route.path)
        for route in routes
        for method in route.methods or ()
        if not CHECKS & set(dependencies(route.dependant))
    }
    assert unchecked == OPEN_TO_ALL


def dependencies(dependant: Dependant) -> Iterator[object]:
    yield dependant.call
    for one in dependant.dependencies:
        yield from dependencies(one)


async def test_search_finds_nothing_of_other_tenants(api: httpx.AsyncClient):
    otter, heron = Tenant(api, KEYS["otter"]), Tenant(api, KEYS["heron"])
    result = await otter.judge()
    for words, kind in ((result["agent_name"], "agent"), (result["id"], "result"), (URL, "page")):
        own = (await otter.call("GET", "/v1/search", params={"q": words})).json()["items"]
        assert kind in {one["kind"] for one in own}
        foreign = (await heron.call("GET", "/v1/search", params={"q": words})).json()["items"]
        assert {one["kind"] for one in foreign} <= {"task"}
