"""Delivery of webhooks: signed requests through the egress proxy, retried from a queue in the database.

The signature follows Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over ID, timestamp and body. The
egress proxy checks the address of every connection, as for captures. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx
import structlog

from app.async_tools import cancellable_sleep
from app.clock import Clock
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.webhooks import DELIVERED, FAILED, PENDING, DueDelivery, disable_webhook, lease_due, record_attempt
from cache.backends.http import tls_context
from cache.egress.proxy import EgressProxy

RETRY_AFTER_S: Final = (5, 30, 120, 600, 3600, 3 * 3600, 8 * 3600, 24 * 3600)
"""Pauses after failed attempts. After the last one, the delivery has failed."""
TIMEOUT_S: Final = 20.0
_LEASE_S: Final = 90.0
_POLL_S: Final = 1.0
_CONCURRENT: Final = 32
OWNER_LIMIT: Final = 4
"""Maximum deliveries in flight per owner and process, so that slow receivers of one owner do not delay others."""
_MAX_RESPONSE_BYTES: Final = 256 * 1024
_GONE: Final = 410
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix
_log = structlog.get_logger(__name__)


def new_secret() -> str:
    """Return a new signing key in the format of Standard Webhooks."""
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header ``webhook-signature``. ``timestamp`` is in seconds."""
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def event_body(due: DueDelivery) -> bytes:
    """Return the body of an event. It is the same in every attempt."""
    job: dict[str, Any] | None = None if due.snapshot is None else json.loads(due.snapshot)
    data = {} if job is None else _job_json(job)
    event = {"type": due.event, "timestamp": due.created_at.isoformat(), "data": data}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _job_json(job: dict[str, Any]) -> dict[str, Any]:
    error = None if job["error"] is None else json.loads(job["error"])
    names = ("id", "kind", "submission_id", "agent", "task_id", "model", "status", "attempts", "result_id")
    return {
        **{name: job[name] for name in names},
        "answer": job["answer_name"],
        "run": job.get("run"),  # missing in deliveries of an earlier release
        "error": None if error is None else {"code": error["code"], "detail": error["detail"]},
        **{name: job[name] for name in ("created_at", "started_at", "finished_at")},
        "url": f"/v1/jobs/{job['id']}",
        "result_url": None if job["result_id"] is None else f"/v1/results/{job['result_id']}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """Outcome of one attempt. ``error`` is None if the receiver accepted the event."""

    status_code: int | None = None
    error: str | None = None


class WebhookSender:
    """Sender of due deliveries. ``run`` is a background task; several processes share the queue."""

    def __init__(
        self,
        database: Database,
        proxy: EgressProxy,
        *,
        clock: Clock,
        timeout_s: float = TIMEOUT_S,
        count: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        """``count`` is called with the state after each attempt."""
        self._database = database
        self._proxy = proxy
        self._clock = clock
        self._timeout_s = timeout_s
        self._count = count
        self._in_flight: Counter[str] = Counter()  # by owner
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Send due deliveries until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._ended.clear()
                try:
                    started = await self.start_due(group)
                except DatabaseUnavailable as error:
                    _log.warning("webhooks wait for the database", detail=str(error))
                    started = 0
                await cancellable_sleep(0.0)
                if not started:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_POLL_S):
                            await self._ended.wait()

    async def start_due(self, group: asyncio.TaskGroup) -> int:
        """Start sending due deliveries, as many as the limits permit, and return their number."""
        free = _CONCURRENT - self._in_flight.total()
        if not free:
            return 0
        async with self._database.begin() as connection:
            due = await lease_due(
                connection,
                limit=free,
                owner_limit=OWNER_LIMIT,
                in_flight=+self._in_flight,
                now=self._clock.now(),
                lease_s=_LEASE_S,
            )
        for each in due:
            self._in_flight[each.owner] += 1
            group.create_task(self._deliver(each))
        return len(due)

    async def _deliver(self, due: DueDelivery) -> None:
        try:
            await self._record(due, await self._send(due))
        except DatabaseUnavailable as error:
            # The event is sent again when the lease ends.
            _log.warning("webhook sent, outcome not stored", delivery=due.id, detail=str(error))
        finally:
            self._in_flight[due.owner] -= 1
            self._ended.set()

    async def _record(self, due: DueDelivery, outcome: _Outcome) -> None:
        now = self._clock.now()
        if outcome.error is None:
            state, next_at = DELIVERED, None
        elif due.attempts > len(RETRY_AFTER_S) or outcome.status_code == _GONE:
            state, next_at = FAILED, None
        else:
            state, next_at = PENDING, now + timedelta(seconds=RETRY_AFTER_S[due.attempts - 1])
        async with self._database.begin() as connection:
            await record_attempt(
                connection,
                due,
                state=state,
                status_code=outcome.status_code,
                error=outcome.error,
                next_at=next_at,
                delivered_at=now if state == DELIVERED else None,
            )
            if outcome.status_code == _GONE:
                await disable_webhook(connection, due.webhook_id, "the receiver returned 410 Gone", now=now)
        self._count(state)
        _log.info("webhook sent", delivery=due.id, state=state, status=outcome.status_code, attempt=due.attempts)

    async def _send(self, due: DueDelivery) -> _Outcome:
        body, timestamp = event_body(due), int(self._clock.now().timestamp())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "assay-webhooks",
            "webhook-id": due.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(due.secret, message_id=due.id, timestamp=timestamp, body=body),
        }
        try:
            tls = await asyncio.to_thread(tls_context)
            async with (
                asyncio.timeout(self._timeout_s),
                self._proxy.proxy_port(max_bytes=len(body) + _MAX_RESPONSE_BYTES) as port,
                httpx.AsyncClient(proxy=port.url, trust_env=False, verify=tls, timeout=self._timeout_s) as client,
            ):
                try:
                    async with client.stream("POST", due.url, content=body, headers=headers) as response:
                        status = response.status_code
                except httpx.HTTPError as error:
                    refusal = port.refusal_of(due.url)
                    return _Outcome(error=str(error) or type(error).__name__ if refusal is None else refusal.detail)
                refusal = port.refusal_of(due.url)
                if refusal is not None:  # the response is that of the proxy
                    return _Outcome(error=f"{refusal.reason.value}: {refusal.detail}")
        except TimeoutError:
            return _Outcome(error=f"no response within {self._timeout_s:g} s")
        except (httpx.InvalidURL, OSError, ValueError) as error:
            return _Outcome(error=f"{type(error).__name__}: {error}")
        if 200 <= status < 300:
            return _Outcome(status_code=status)
        redirect = "; redirects are not followed" if 300 <= status < 400 else ""
        return _Outcome(status_code=status, error=f"the receiver returned {status}{redirect}")
