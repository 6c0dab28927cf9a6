"""Attack: a tenant replaces the evidence of another one, opens their objects, or undoes what was done for all."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi, judges, open_api  # noqa: F401 - fixtures
from tests.integration.app.conftest import (  # noqa: F401 - fixtures
    database_url,
    patient_database_clients,
    postgres_url,
)
from tests.security.test_tenants import KEYS, URL, Tenant, page_of

pytestmark = pytest.mark.postgres

LIVE = {URL: "A page about lamps that does not name any city."}


@pytest.mark.parametrize("attack", ["recapture", "delete and submit"])
async def test_capture_caused_by_a_tenant_leaves_the_evidence_of_others(
    open_api: OpenApi,  # noqa: F811
    attack: str,
):
    """The service captures the page again for the attacker. The victim keeps their own upload."""
    async with open_api(api_keys=",".join(KEYS.values()), pages=LIVE) as api:
        victim, attacker = Tenant(api, KEYS["heron"]), Tenant(api, KEYS["otter"])
        await victim.upload(page_of(await victim.judge())["page_id"])
        before = await victim.judge()
        shared = page_of(await attacker.judge())
        if attack == "recapture":
            made = (await attacker.call("POST", f"/v1/pages/{shared['page_id']}/recapture")).json()
            assert made["owner"] == "otter"
        else:
            assert (await attacker.change(action="delete")).status_code == 201
        captured = page_of(await attacker.judge())
        assert (captured["page_id"] != shared["page_id"], captured["owner"]) == (True, "otter")
        after = await victim.judge()
        assert (after["score"], page_of(after)["page_id"]) == (before["score"], page_of(before)["page_id"])


async def test_operator_controls_what_is_shared_but_sees_no_data_of_others(open_api: OpenApi):  # noqa: F811
    prometheus = "prometheus:operator:8d2f61c0be973a45fe10"
    async with open_api(api_keys=f"{','.join(KEYS.values())},{prometheus}") as api:
        operator, tenant = Tenant(api, prometheus), Tenant(api, KEYS["heron"])
        result = await tenant.judge()
        assert (await operator.call("GET", "/metrics")).status_code == 200
        assert_problem(await operator.call("GET", f"/v1/results/{result['id']}"), 404)
        assert (await operator.call("GET", "/v1/results")).json()["items"] == []


async def test_single_key_sees_no_data_of_stored_keys(open_api: OpenApi):  # noqa: F811
    """A single entry without a scope controls the service, but is one owner among those of ``assay admin keys``."""
    key = "2b7e151628aed2a6abf7"
    async with open_api(api_keys=f"heron:submit:{key}") as api:
        result = await Tenant(api, key).judge()
    other = "603deb1015ca71be2b73"
    async with open_api(workers=0, api_keys=other) as api:
        assert (await Tenant(api, other).call("GET", "/metrics")).status_code == 200
        assert_problem(await Tenant(api, other).call("GET", f"/v1/results/{result['id']}"), 404)


OVERRIDE = {"leaf": "source", "outcome": "passed", "reason": "mine", "by": "somebody"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/results/{result_id}/overrides": OVERRIDE,
    "/v1/results/{result_id}/overrides/{override_id}/withdraw": {"reason": "mine", "by": "a stranger"},
    "/v1/submissions/{submission_id}": {"budget_usd": 1.0},
}
LISTS = ("jobs", "submissions", "results")
IDS = ("submission_id", "job_id", "result_id", "page_id", "change_id", "webhook_id")


async def test_objects_of_an_owner_do_not_exist_for_others_in_any_operation(open_api: OpenApi):  # noqa: F811
    async with open_api(api_keys=",".join(KEYS.values()), pages=LIVE) as api:
        owner, stranger = Tenant(api, KEYS["heron"]), Tenant(api, KEYS["otter"])
        result = await owner.judge()
        [job] = (await owner.call("GET", "/v1/jobs")).json()["items"]
        added = await owner.call("POST", f"/v1/results/{result['id']}/overrides", json=OVERRIDE)
        assert added.status_code == 201, added.text
        override = added.json()
        ids = {
            "submission_id": job["submission_id"],
            "job_id": job["id"],
            "task_id": result["task_id"],
            "result_id": result["id"],
            "page_id": (await owner.upload(page_of(result)["page_id"])).json()["id"],
            "change_id": (await owner.change(action="flag")).json()["id"],
            "override_id": override["id"],
            "webhook_id": (await owner.call("POST", "/v1/webhooks", json={"url": URL})).json()["id"],
        }
        played = 0
        for path, operations in (await api.get("/openapi.json")).json()["paths"].items():
            named = re.findall(r"\{(\w+)\}", path)
            if not set(named) & set(IDS):
                continue
            for method in operations:
                refused = await request(stranger, method, path, ids)
                assert (refused.status_code, method, path) == (404, method, path), refused.text
                played += 1
        assert played >= 20
        for name in LISTS:
            [first, *_] = (await owner.call("GET", f"/v1/{name}")).json()["items"]
            assert "demo" in (first.get("agent"), first.get("agent_name"))
        for name in (*LISTS, "results", "pages", "pages/changes", "reviews", "webhooks"):
            path = f"/v1/{name}"
            assert (await stranger.call("GET", path)).json()["items"] == [], path
        # The override of another owner, through a result of the attacker.
        own = await stranger.judge()
        path = f"/v1/results/{own['id']}/overrides/{override['id']}/withdraw"
        assert_problem(await stranger.call("POST", path, json={"reason": "mine", "by": "a stranger"}), 404)
        [kept] = (await owner.call("GET", f"/v1/results/{result['id']}/overrides")).json()["items"]
        assert (kept["id"], kept["in_force"]) == (override["id"], True)
        again = await owner.call("GET", f"/v1/results/{result['id']}")
        assert again.json()["score"] == result["score"]


async def request(tenant: Tenant, method: str, path: str, ids: dict[str, str]) -> httpx.Response:
    options: dict[str, Any] = {}
    if path.endswith("/content"):
        options = {"content": b"<p>Paris", "headers": {"Content-Type": "text/html"}}
    elif path.endswith("/closest"):
        options = {"params": {"claim": "Paris"}}
    elif method in ("post", "patch", "put") and path in BODIES:
        options = {"json": BODIES[path]}
    return await tenant.call(method.upper(), path.format_map(ids), **options)
