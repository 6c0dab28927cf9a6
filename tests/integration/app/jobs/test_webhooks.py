"""Webhooks: signature, retries, address checks and the log, with a real receiver and a real database."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.webhooks import OWNER_LIMIT, RETRY_AFTER_S, WebhookSender, new_secret
from app.storage.database import Database
from app.storage.webhooks import (
    Delivery,
    DueDelivery,
    Webhook,
    get_webhook,
    insert_webhook,
    lease_due,
    list_deliveries,
    queue_test,
)
from cache.egress.proxy import EgressProxy
from tests.integration.app.api.api_calls import assert_problem, submission_body, submit
from tests.integration.app.api.conftest import OpenApi, judges, open_api  # noqa: F401 - fixtures
from tests.standin.http import HttpRequest
from tests.standin.receiver import Receiver
from tests.unit.app.test_clock import NOON, ManualClock

pytestmark = pytest.mark.postgres
API_DOCS = Path(__file__).parents[4] / "docs" / "http-api.md"


def assert_signed(request: HttpRequest, secret: str) -> dict[str, Any]:
    """Check the signature as receivers do, and return the event."""
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    event: dict[str, Any] = json.loads(request.body)
    return event


class Sending:
    """Sender with a fake clock, and one webhook with one queued test event."""

    def __init__(self, database: Database, proxy: EgressProxy, webhook: Webhook, *, timeout_s: float) -> None:
        self.clock = ManualClock(NOON)
        self.webhook = webhook
        self._database = database
        self._sender = WebhookSender(database, proxy, clock=self.clock, timeout_s=timeout_s)

    async def send(self) -> Delivery:
        """Send what is due, and return the newest delivery."""
        async with asyncio.TaskGroup() as group:
            await self._sender.start_due(group)
        return (await self.deliveries())[0]

    async def deliveries(self) -> list[Delivery]:
        async with self._database.begin() as connection:
            return await list_deliveries(connection, self.webhook.id, limit=10)

    async def stored(self) -> Webhook | None:
        async with self._database.begin() as connection:
            return await get_webhook(connection, self.webhook.id)

    def wait(self, seconds: float) -> None:
        self.clock.time += timedelta(seconds=seconds)


def webhook_of(owner: str, url: str) -> Webhook:
    return Webhook(
        id=f"hook_{owner}",
        owner=owner,
        url=url,
        secret=new_secret(),
        description="",
        submission_id=None,
        created_at=NOON,
    )


async def queue_events(database: Database, webhook: Webhook, *, events: int = 1) -> None:
    """Store a webhook and queue test events for it."""
    async with database.begin() as connection:
        await insert_webhook(connection, webhook)
        for _ in range(events):
            await queue_test(connection, webhook, now=NOON)


async def lease(
    connection: AsyncConnection, *, limit: int = 5, owner_limit: int = 5, **in_flight: int
) -> list[DueDelivery]:
    return await lease_due(connection, limit=limit, owner_limit=owner_limit, in_flight=in_flight, now=NOON, lease_s=90)


@asynccontextmanager
async def sending_to(
    database: Database, url: str, *, allow: Sequence[str] = (), timeout_s: float = 30.0
) -> AsyncIterator[Sending]:
    webhook = webhook_of("otter", url)
    await queue_events(database, webhook)
    async with EgressProxy(frozenset(allow)) as proxy:
        yield Sending(database, proxy, webhook, timeout_s=timeout_s)


async def test_failed_delivery_is_sent_again_with_the_same_id_and_body(database: Database):
    async with (
        Receiver([500, 503, 204]) as receiver,
        sending_to(database, receiver.url, allow=[receiver.host_port]) as sending,
    ):
        first = await sending.send()
        assert (first.state, first.attempts, first.status_code) == ("pending", 1, 500)
        assert first.error == "the receiver returned 500"
        assert first.next_at == NOON + timedelta(seconds=RETRY_AFTER_S[0])
        assert (await sending.send()).attempts == 1  # not due
        sending.wait(RETRY_AFTER_S[0])
        assert (await sending.send()).next_at == sending.clock.now() + timedelta(seconds=RETRY_AFTER_S[1])
        sending.wait(RETRY_AFTER_S[1])
        last = await sending.send()
        assert (last.state, last.attempts, last.status_code, last.error) == ("delivered", 3, 204, None)
        assert (last.delivered_at, last.next_at) == (sending.clock.now(), None)
        requests = [await receiver.next() for _ in range(3)]
    assert {assert_signed(request, sending.webhook.secret)["type"] for request in requests} == {"webhook.test"}
    assert {(request.headers["webhook-id"], request.body) for request in requests} == {(last.id, requests[0].body)}
    assert len({request.headers["webhook-timestamp"] for request in requests}) == 3


async def test_delivery_fails_after_the_last_attempt(database: Database):
    async with Receiver([500]) as receiver, sending_to(database, receiver.url, allow=[receiver.host_port]) as sending:
        for pause_s in RETRY_AFTER_S:
            assert (await sending.send()).state == "pending"
            sending.wait(pause_s)
        last = await sending.send()
    assert (last.state, last.attempts, last.next_at) == ("failed", len(RETRY_AFTER_S) + 1, None)


async def test_receiver_that_is_gone_disables_the_webhook(database: Database):
    async with Receiver([410]) as receiver, sending_to(database, receiver.url, allow=[receiver.host_port]) as sending:
        assert (await sending.send()).state == "failed"
        stored = await sending.stored()
    assert stored is not None
    assert (stored.disabled_at, stored.disabled_reason) == (NOON, "the receiver returned 410 Gone")


async def test_leased_delivery_is_sent_by_one_process_and_again_after_a_crash(database: Database):
    async with Receiver() as receiver, sending_to(database, receiver.url, allow=[receiver.host_port]) as sending:
        async with database.begin() as connection:
            [leased] = await lease(connection)
            assert await lease(connection) == []
        assert (await sending.send()).attempts == 1
        sending.wait(90)
        delivery = await sending.send()
        assert (delivery.state, delivery.attempts, delivery.id) == ("delivered", 2, leased.id)


async def test_hanging_receiver_of_one_owner_does_not_delay_others(database: Database):
    processes = 2
    async with Receiver([None]) as hanging, Receiver() as other:
        await queue_events(database, webhook_of("otter", hanging.url), events=100)
        async with EgressProxy(frozenset({hanging.host_port, other.host_port})) as proxy:
            clock = ManualClock(NOON)
            senders = [WebhookSender(database, proxy, clock=clock, timeout_s=600) for _ in range(processes)]
            running = [asyncio.create_task(sender.run()) for sender in senders]
            for _ in range(processes * OWNER_LIMIT):
                await hanging.next()
            heron = webhook_of("heron", other.url)
            await queue_events(database, heron, events=20)
            for _ in range(20):
                assert assert_signed(await other.next(), heron.secret)["type"] == "webhook.test"
            assert hanging.requests.empty()  # one more would exceed the limit
            for task in running:
                task.cancel()
            ended = await asyncio.gather(*running, return_exceptions=True)
    assert [type(end) for end in ended] == [asyncio.CancelledError] * processes


async def test_ended_jobs_are_sent_to_the_webhooks_of_their_owner(open_api: OpenApi):  # noqa: F811
    async with Receiver() as receiver, open_api(egress_allow=frozenset({receiver.host_port})) as api:
        made = await api.post("/v1/webhooks", json={"url": receiver.url, "description": "nightly"})
        assert made.status_code == 201, made.text
        webhook = made.json()
        [job_id] = await submit(api)
        event = assert_signed(await receiver.next(), webhook["secret"])
        job = (await api.get(f"/v1/jobs/{job_id}")).json()
        assert event["type"] == "job.succeeded"
        assert {name: event["data"][name] for name in ("id", "agent", "run", "status", "result_id", "answer")} == {
            name: job[name] for name in ("id", "agent", "run", "status", "result_id", "answer")
        }
        assert (await api.get(event["data"]["result_url"])).json()["id"] == job["result_id"]
        shown = (await api.get("/v1/webhooks")).json()["items"]
        assert shown == [{name: value for name, value in webhook.items() if name != "secret"}]
        log = f"/v1/webhooks/{webhook['id']}/deliveries"
        async with asyncio.timeout(60):
            while (delivery := (await api.get(log)).json()["items"][0])["state"] != "delivered":
                pass
        assert (delivery["job_id"], delivery["event"], delivery["status_code"]) == (job_id, "job.succeeded", 204)
        assert webhook["secret"] not in (await api.get(log)).text
        assert (await api.post(f"/v1/webhooks/{webhook['id']}/test")).status_code == 202
        assert assert_signed(await receiver.next(), webhook["secret"])["type"] == "webhook.test"
        assert (await api.delete(f"/v1/webhooks/{webhook['id']}")).status_code == 200
        assert_problem(await api.get(log), 404)


async def test_documented_check_of_the_signature_accepts_only_genuine_events(open_api: OpenApi):  # noqa: F811
    documented: dict[str, Any] = {"base64": base64, "hashlib": hashlib, "hmac": hmac, "time": time}
    [example] = re.findall(r"```python\n(def is_genuine.*?)```", API_DOCS.read_text(), re.DOTALL)
    exec(example, documented)
    is_genuine = documented["is_genuine"]
    async with Receiver() as receiver, open_api(workers=0, egress_allow=frozenset({receiver.host_port})) as api:
        webhook = (await api.post("/v1/webhooks", json={"url": receiver.url})).json()
        await api.post(f"/v1/webhooks/{webhook['id']}/test")
        request = await receiver.next()
    assert is_genuine(request.headers, request.body, webhook["secret"])
    assert not is_genuine(request.headers, request.body + b" ", webhook["secret"])
    assert not is_genuine(request.headers, request.body, new_secret())
    assert not is_genuine({**request.headers, "webhook-timestamp": "1700000000"}, request.body, webhook["secret"])


async def test_webhook_of_a_submission_gets_only_its_jobs(open_api: OpenApi):  # noqa: F811
    async with Receiver() as receiver, open_api(workers=0, egress_allow=frozenset({receiver.host_port})) as api:
        [other] = await submit(api)
        body, key = submission_body(webhook_url=receiver.url), {"Idempotency-Key": "n1"}
        accepted = (await api.post("/v1/submissions", json=body, headers=key)).json()
        again = (await api.post("/v1/submissions", json=body, headers=key)).json()
        assert (again["id"], again["webhook"]["id"]) == (accepted["id"], accepted["webhook"]["id"])
        assert "secret" not in {name for name, value in again["webhook"].items() if value is not None}
        [job] = accepted["jobs"]
        for job_id in (other, job["id"]):
            await api.post(f"/v1/jobs/{job_id}/cancel")
        event = assert_signed(await receiver.next(), accepted["webhook"]["secret"])
        assert (event["type"], event["data"]["id"]) == ("job.cancelled", job["id"])
        [listed] = (await api.get("/v1/webhooks")).json()["items"]
        assert listed["submission_id"] == accepted["id"]
        await api.delete(f"/v1/submissions/{accepted['id']}")
        assert (await api.get("/v1/webhooks")).json()["items"] == []
