"""Queries for webhooks and their deliveries. A trigger of the table ``jobs`` queues a delivery when a job ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.direct_pool import DirectConnection
from app.storage.listings import below, equal
from app.storage.tables import webhook_deliveries, webhooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Address that is called when jobs of an owner end. ``submission_id``: only jobs of this submission."""

    id: str
    owner: str
    url: str
    secret: str
    description: str
    submission_id: str | None
    created_at: datetime
    disabled_at: datetime | None = None
    disabled_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Delivery of one event to one webhook. ``position`` sorts deliveries by creation."""

    position: int
    id: str
    webhook_id: str
    job_id: str | None
    event: str
    state: str
    attempts: int
    status_code: int | None
    error: str | None
    created_at: datetime
    next_at: datetime | None
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDelivery:
    """Delivery that this process attempts. ``snapshot`` is the row of the job as JSON, or None for a test."""

    position: int
    id: str
    webhook_id: str
    owner: str
    event: str
    snapshot: str | None
    created_at: datetime
    attempts: int
    url: str
    secret: str


PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"
TEST_EVENT = "webhook.test"


async def insert_webhook(connection: AsyncConnection, webhook: Webhook) -> None:
    await connection.execute(insert(webhooks).values(**asdict(webhook)))


async def insert_submission_webhook(connection: DirectConnection, webhook: Webhook) -> None:
    """Do the same in the transaction of a submission."""
    await connection.execute(
        "INSERT INTO webhooks (id, owner, url, secret, description, submission_id, created_at)"
        " VALUES (%(id)s, %(owner)s, %(url)s, %(secret)s, %(description)s, %(submission_id)s, %(created_at)s)",
        asdict(webhook),
    )


async def count_webhooks(connection: AsyncConnection, owner: str) -> int:
    """Return the number of webhooks of an owner that are not limited to a submission."""
    query = select(func.count()).select_from(webhooks)
    of_owner = query.where(webhooks.c.owner == owner, webhooks.c.submission_id.is_(None))
    return int((await connection.execute(of_owner)).scalar_one())


async def get_webhook(connection: AsyncConnection, webhook_id: str, *, owner: str | None = None) -> Webhook | None:
    """Return one webhook, or None. ``owner`` limits the query to one owner."""
    query = select(webhooks).where(webhooks.c.id == webhook_id, *equal((webhooks.c.owner, owner)))
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else Webhook(**row)


async def list_webhooks(
    connection: AsyncConnection, *, limit: int, owner: str | None, before: str | None
) -> list[Webhook]:
    """Return webhooks, newest first. ``before`` is the ID of the last one of the previous page."""
    query = select(webhooks).where(*equal((webhooks.c.owner, owner)), *below(webhooks.c.id, before))
    query = query.order_by(webhooks.c.id.desc()).limit(limit)
    return [Webhook(**row) for row in (await connection.execute(query)).mappings()]


async def delete_webhook(connection: AsyncConnection, webhook_id: str) -> None:
    """Delete a webhook with its deliveries."""
    await connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))


async def disable_webhook(connection: AsyncConnection, webhook_id: str, reason: str, *, now: datetime) -> None:
    """Disable a webhook: nothing more is queued for it, and what is queued fails."""
    values = {"disabled_at": now, "disabled_reason": reason}
    await connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(values))
    queued = (webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.state == PENDING)
    await connection.execute(
        update(webhook_deliveries).where(*queued).values(state=FAILED, next_at=None, error="the webhook is disabled")
    )


async def queue_test(connection: AsyncConnection, webhook: Webhook, *, now: datetime) -> Delivery:
    """Queue a test event."""
    values = {"webhook_id": webhook.id, "owner": webhook.owner, "event": TEST_EVENT, "created_at": now, "next_at": now}
    query = insert(webhook_deliveries).values(**values).returning(*_DELIVERY)
    return Delivery(**(await connection.execute(query)).mappings().one())


async def list_deliveries(
    connection: AsyncConnection, webhook_id: str, *, limit: int, before: int | None = None
) -> list[Delivery]:
    """Return the deliveries of a webhook, newest first. ``before`` is the position of the last one before."""
    chosen = (webhook_deliveries.c.webhook_id == webhook_id, *below(webhook_deliveries.c.position, before))
    query = select(*_DELIVERY).where(*chosen)
    found = await connection.execute(query.order_by(webhook_deliveries.c.position.desc()).limit(limit))
    return [Delivery(**row) for row in found.mappings()]


async def lease_due(
    connection: AsyncConnection,
    *,
    limit: int,
    owner_limit: int,
    in_flight: Mapping[str, int],
    now: datetime,
    lease_s: float,
) -> list[DueDelivery]:
    """Return due deliveries and count an attempt of each. No process gets them again before the lease ends.

    ``owner_limit`` is the maximum number of deliveries in flight per owner. ``in_flight`` counts those of this process.
    Owners with the fewest come first.
    """
    query = text(
        "WITH RECURSIVE owners AS ("
        "  SELECT min(owner) AS owner FROM webhook_deliveries WHERE state = 'pending'"
        "  UNION ALL"
        "  SELECT (SELECT min(owner) FROM webhook_deliveries WHERE state = 'pending' AND owner > owners.owner)"
        "  FROM owners WHERE owner IS NOT NULL"
        "), busy AS ("
        "  SELECT owner, coalesce(CAST(CAST(:in_flight AS jsonb) ->> owner AS integer), 0) AS deliveries FROM owners"
        "), due AS ("
        "  SELECT position FROM busy CROSS JOIN LATERAL ("
        "    SELECT position, next_at FROM webhook_deliveries each"
        "    WHERE each.owner = busy.owner AND state = 'pending' AND next_at <= :now"
        "    ORDER BY next_at LIMIT :owner_limit - busy.deliveries FOR UPDATE SKIP LOCKED"
        "  ) found"
        "  ORDER BY deliveries + row_number() OVER (PARTITION BY owner ORDER BY next_at), next_at LIMIT :limit"
        ") UPDATE webhook_deliveries each SET attempts = attempts + 1, next_at = :lease_ends"
        " FROM due, webhooks WHERE each.position = due.position AND webhooks.id = each.webhook_id"
        " RETURNING each.position, each.id, each.webhook_id, each.owner, each.event, each.snapshot, each.created_at,"
        " each.attempts, webhooks.url, webhooks.secret"
    )
    values = {
        "in_flight": json.dumps(in_flight),
        "owner_limit": owner_limit,
        "limit": limit,
        "now": now,
        "lease_ends": now + timedelta(seconds=lease_s),
    }
    return [DueDelivery(**row) for row in (await connection.execute(query, values)).mappings()]


async def record_attempt(
    connection: AsyncConnection,
    due: DueDelivery,
    *,
    state: str,
    status_code: int | None,
    error: str | None,
    next_at: datetime | None,
    delivered_at: datetime | None,
) -> None:
    """Store the outcome of the last attempt, unless another process has started a later one."""
    this_attempt = (
        webhook_deliveries.c.position == due.position,
        webhook_deliveries.c.attempts == due.attempts,
        webhook_deliveries.c.state == PENDING,
    )
    await connection.execute(
        update(webhook_deliveries)
        .where(*this_attempt)
        .values(state=state, status_code=status_code, error=error, next_at=next_at, delivered_at=delivered_at)
    )


_DELIVERY = tuple(column for column in webhook_deliveries.c if column.name not in {"snapshot", "owner"})
