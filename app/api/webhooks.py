"""Routes for webhooks: addresses that are called when jobs end."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.models import ListOut, RecordModel
from app.api.paging import ID_PATTERN, IdPath, PageRequest, PositionsPageDep, pages_by_id
from app.api.problems import Problem, not_found
from app.api.request_fields import StrictJsonRoute, WebhookUrl
from app.jobs.webhooks import new_secret
from app.service import Service
from app.storage import webhooks as rows
from app.storage.jobs import get_submission
from app.storage.webhooks import Webhook

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictJsonRoute)

ID_PREFIX = "hook"
MAX_WEBHOOKS = 20
"""Maximum number of webhooks of one owner, without those of single submissions."""
_log = structlog.get_logger(__name__)


class WebhookIn(BaseModel):
    """A webhook for all jobs of the owner, or for those of one submission."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"url": "https://example.org/hooks/assay"}}
    )

    url: WebhookUrl
    description: str = Field("", max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
    submission_id: str | None = Field(None, pattern=ID_PATTERN, description="Only for jobs of this submission")


class WebhookOut(RecordModel):
    """A webhook. It is called when a job ends: `job.succeeded`, `job.failed` or `job.cancelled`."""

    id: str
    url: str
    description: str
    submission_id: str | None
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str | None


class NewWebhookOut(WebhookOut):
    """A new webhook with the key of its signatures, which is shown only once."""

    secret: str = Field(description="Key of the signatures; not shown again")


class DeliveryOut(RecordModel):
    """Delivery of one event. The receiver gets `id` as the header `webhook-id`."""

    id: str
    event: str
    job_id: str | None
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    status_code: int | None = Field(description="Status of the last response")
    error: str | None = Field(description="Why the last attempt failed")
    created_at: datetime
    next_at: datetime | None = Field(description="Time of the next attempt")
    delivered_at: datetime | None


def new_webhook(
    service: Service, caller: Caller, url: str, *, description: str = "", submission_id: str | None = None
) -> Webhook:
    """Return a webhook of the caller with a new secret, which is not stored yet."""
    return Webhook(
        id=service.runtime.ids.new(ID_PREFIX),
        owner=caller.owner,
        url=url,
        secret=new_secret(),
        description=description,
        submission_id=submission_id,
        created_at=service.runtime.clock.now(),
    )


@router.post("", status_code=201)
async def create_webhook(body: WebhookIn, service: ServiceDep, caller: SubmitterDep) -> NewWebhookOut:
    """Register an address that is called when jobs of your owner end. The response contains the signing key once."""
    webhook = new_webhook(service, caller, body.url, description=body.description, submission_id=body.submission_id)
    async with service.database.begin() as connection:
        if body.submission_id is not None:
            if await get_submission(connection, body.submission_id, owner=caller.owner) is None:
                raise not_found("submission")
        elif await rows.count_webhooks(connection, caller.owner) >= MAX_WEBHOOKS:
            raise Problem(409, "TOO_MANY", f"An owner can have at most {MAX_WEBHOOKS} webhooks; delete one")
        await rows.insert_webhook(connection, webhook)
    _log.info("webhook created", webhook_id=webhook.id, by=caller.owner)
    return NewWebhookOut.of_record(webhook)


@router.get("")
async def list_webhooks(
    service: ServiceDep, caller: ReaderDep, paging: Annotated[PageRequest, pages_by_id(ID_PREFIX)]
) -> ListOut[WebhookOut]:
    """List webhooks, newest first."""
    async with service.database.begin() as connection:
        found = await rows.list_webhooks(
            connection, limit=paging.limit + 1, owner=caller.visible_owner, before=paging.cursor
        )
    return ListOut.page(found, paging, lambda webhook: webhook.id, WebhookOut.of_record)


@router.delete("/{webhook_id}")
async def delete_webhook(webhook_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> WebhookOut:
    """Delete a webhook with its deliveries. What is queued is not sent."""
    webhook = await _find(service, caller, webhook_id)
    async with service.database.begin() as connection:
        await rows.delete_webhook(connection, webhook_id)
    _log.info("webhook deleted", webhook_id=webhook_id, by=caller.owner)
    return WebhookOut.of_record(webhook)


@router.post("/{webhook_id}/test", status_code=202)
async def test_webhook(webhook_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> DeliveryOut:
    """Send the event `webhook.test`."""
    webhook = await _find(service, caller, webhook_id)
    if webhook.disabled_at is not None:
        raise Problem(409, "DISABLED", f"The webhook is disabled: {webhook.disabled_reason}. Create a new one")
    async with service.database.begin() as connection:
        return DeliveryOut.of_record(await rows.queue_test(connection, webhook, now=service.runtime.clock.now()))


@router.get("/{webhook_id}/deliveries")
async def list_webhook_deliveries(
    webhook_id: IdPath, service: ServiceDep, caller: ReaderDep, paging: PositionsPageDep
) -> ListOut[DeliveryOut]:
    """List the deliveries of a webhook, newest first."""
    await _find(service, caller, webhook_id)
    before = None if paging.cursor is None else int(paging.cursor)
    async with service.database.begin() as connection:
        found = await rows.list_deliveries(connection, webhook_id, limit=paging.limit + 1, before=before)
    return ListOut.page(found, paging, lambda delivery: str(delivery.position), DeliveryOut.of_record)


async def _find(service: Service, caller: Caller, webhook_id: str) -> Webhook:
    async with service.database.begin() as connection:
        webhook = await rows.get_webhook(connection, webhook_id, owner=caller.visible_owner)
    if webhook is None:
        raise not_found("webhook")
    return webhook
