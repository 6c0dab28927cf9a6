"""Routes that pause and resume model providers. Jobs that need a paused provider wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.api.access import OperatorDep, ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.problems import not_found
from app.service import Service
from app.storage import provider_status as rows
from app.storage.provider_status import ProviderPause
from judges.llm.providers import PROVIDERS

router = APIRouter(prefix="/v1/providers", tags=["operation"])

MAX_REASON_CHARS = 500


class PauseIn(BaseModel):
    """Reason for a pause. The error of every waiting job contains it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"reason": "invoice under dispute"}]})

    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS, pattern=r"^[^\x00-\x1f\x7f]*$")]


class ProviderOut(BaseModel):
    """A provider and, if it is paused, the details of the pause."""

    provider: str
    status: Literal["in_use", "paused"]
    reason: str | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None


class ProviderListOut(ListOut[ProviderOut]):
    """All providers, and warnings about the default model."""

    warnings: list[str] = Field(
        default_factory=list,
        description="Warnings about the default model, for example that its provider shuts it down within 60 days",
    )


@router.get("")
async def list_providers(service: ServiceDep, _caller: ReaderDep) -> ProviderListOut:
    """List all providers by name, and warnings about the default model."""
    async with service.database.begin() as connection:
        pauses = await rows.paused_providers(connection)
    return ProviderListOut(
        items=[_shown(name, pauses.get(name)) for name in sorted(set(PROVIDERS.values()))],
        warnings=await service.runtime.models.warnings(None, wait=False),
    )


@router.post("/{provider}/pause")
async def pause_provider(provider: str, body: PauseIn, service: ServiceDep, caller: OperatorDep) -> ProviderOut:
    """Stop all requests to a provider. It takes effect in all workers within 2 seconds. Jobs that need it wait."""
    name = _known(provider)
    provider_pause = ProviderPause(
        provider=name, reason=body.reason, paused_by=caller.owner, paused_at=datetime.now(UTC)
    )
    async with service.database.begin() as connection:
        await rows.pause_provider(connection, provider_pause)
    return await _present(service, name)


@router.post("/{provider}/resume")
async def resume_provider(provider: str, service: ServiceDep, _caller: OperatorDep) -> ProviderOut:
    """Allow requests to a provider again. Waiting jobs continue."""
    name = _known(provider)
    async with service.database.begin() as connection:
        await rows.resume_provider(connection, name)
    return await _present(service, name)


def _known(provider: str) -> str:
    name = PROVIDERS.get(provider)
    if name is None:
        raise not_found("provider")
    return name


async def _present(service: Service, name: str) -> ProviderOut:
    async with service.database.begin() as connection:
        return _shown(name, (await rows.paused_providers(connection)).get(name))


def _shown(name: str, pause: ProviderPause | None) -> ProviderOut:
    if pause is None:
        return ProviderOut(provider=name, status="in_use")
    return ProviderOut(
        provider=name, status="paused", reason=pause.reason, paused_by=pause.paused_by, paused_at=pause.paused_at
    )
