"""Attack: a tenant uses webhooks to reach the network of the service, or to learn about the jobs of another tenant."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.integration.app.api.api_calls import submission_body
from tests.integration.app.api.conftest import OpenApi, judges, open_api  # noqa: F401 - fixtures
from tests.integration.app.conftest import (  # noqa: F401 - fixtures
    database_url,
    patient_database_clients,
    postgres_url,
)
from tests.standin.receiver import Receiver

pytestmark = pytest.mark.postgres

OTTER, HERON = "0b9ad5f2c1e84736a5d0", "77c3e1f0492bd86a1e5c"
KEYS = f"otter:submit:{OTTER},heron:submit:{HERON}"


async def call(api: httpx.AsyncClient, key: str, method: str, path: str, **options: Any) -> Any:
    response = await api.request(method, path, headers={"Authorization": f"Bearer {key}"}, **options)
    response.raise_for_status()
    return response.json()


async def attempt(api: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Register a webhook, send a test event and return its delivery after the first attempt."""
    path = f"/v1/webhooks/{(await call(api, OTTER, 'POST', '/v1/webhooks', json={'url': url}))['id']}"
    await call(api, OTTER, "POST", f"{path}/test")
    async with asyncio.timeout(60):
        while True:
            [delivery] = (await call(api, OTTER, "GET", f"{path}/deliveries"))["items"]
            if delivery["error"] is not None or delivery["state"] != "pending":
                found: dict[str, Any] = delivery
                return found


async def test_internal_addresses_are_not_called(open_api: OpenApi):  # noqa: F811
    async with Receiver() as receiver, open_api(workers=0, api_keys=KEYS) as api:
        port = receiver.host_port.rpartition(":")[2]
        for url in (f"http://localhost:{port}/", f"http://[::1]:{port}/", "http://169.254.169.254/latest/meta-data"):
            delivery = await attempt(api, url)
            assert (delivery["state"], delivery["status_code"]) == ("pending", None)
            assert "denied" in delivery["error"] or "not allowed" in delivery["error"]
        assert receiver.requests.empty()


async def test_redirect_is_not_followed_even_to_an_allowed_address(open_api: OpenApi):  # noqa: F811
    async with Receiver() as target, Receiver([307], location=target.url) as receiver:
        allowed = frozenset({receiver.host_port, target.host_port})
        async with open_api(workers=0, api_keys=KEYS, egress_allow=allowed) as api:
            delivery = await attempt(api, receiver.url)
        assert target.requests.empty()
    assert (delivery["state"], delivery["status_code"]) == ("pending", 307)
    assert delivery["error"] == "the receiver returned 307; redirects are not followed"


async def test_jobs_of_another_owner_cause_no_delivery(open_api: OpenApi):  # noqa: F811
    async with (
        Receiver() as receiver,
        open_api(workers=0, api_keys=KEYS, egress_allow=frozenset({receiver.host_port})) as api,
    ):
        hook = await call(api, OTTER, "POST", "/v1/webhooks", json={"url": receiver.url})
        jobs = []
        for key in (HERON, OTTER):  # the event of the own job is queued last
            accepted = await call(api, key, "POST", "/v1/submissions", json=submission_body())
            jobs.append(accepted["jobs"][0]["id"])
            await call(api, key, "POST", f"/v1/jobs/{jobs[-1]}/cancel")
        log = await call(api, OTTER, "GET", f"/v1/webhooks/{hook['id']}/deliveries")
        assert [delivery["job_id"] for delivery in log["items"]] == [jobs[1]]
        assert jobs[0].encode() not in (await receiver.next()).body
