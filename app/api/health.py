"""Liveness, readiness and metrics."""

from __future__ import annotations

from typing import Any, Literal

import structlog
from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from app.api.access import OperatorDep, ServiceDep
from app.observability.metrics import CONTENT_TYPE
from app.storage.errors import DatabaseUnavailable
from app.storage.jobs import count_by_stage, count_by_status

_log = structlog.get_logger(__name__)
router = APIRouter(tags=["operation"])


class HealthOut(BaseModel):
    """Liveness of the process. ``sandbox``: whether pages are opened only with the browser sandbox."""

    status: Literal["alive"] = "alive"
    sandbox: Literal["on", "off", "unknown"]


class ReadinessCheckOut(BaseModel):
    """One readiness check. ``detail`` is the reason if it failed."""

    name: str
    ok: bool
    detail: str


class ReadinessOut(BaseModel):
    """Readiness for work, with the result of each check."""

    ready: bool
    checks: list[ReadinessCheckOut]


@router.get("/healthz")
async def get_health(service: ServiceDep) -> HealthOut:
    """Report that the process is alive and whether its browsers run in a sandbox."""
    runtime = service.runtime
    running = runtime.sandboxed()
    is_on = running or (running is None and not runtime.settings.browser_unsandboxed)
    return HealthOut(sandbox="on" if is_on else "unknown" if running is None else "off")


@router.get(
    "/readyz",
    response_model=ReadinessOut,
    responses={503: {"model": ReadinessOut, "description": "not ready; `checks` contains the reason"}},
)
async def get_readiness(service: ServiceDep) -> Response:
    """Report whether the service can accept work, with the result of each check."""
    checks = [await _database(service), *service.checks()]
    ready = all(check["ok"] for check in checks)
    headers = {} if ready else {"Retry-After": "2"}
    return JSONResponse({"ready": ready, "checks": checks}, 200 if ready else 503, headers)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(service: ServiceDep, _caller: OperatorDep) -> Response:
    """Return the metrics in the Prometheus text format."""
    async with service.database.begin() as connection:
        for status, count in (await count_by_status(connection)).items():
            service.metrics.jobs.labels(status).set(count)
        service.metrics.stages.clear()
        for stage, count in (await count_by_stage(connection)).items():
            service.metrics.stages.labels(stage).set(count)
    return Response(service.metrics.expose(), media_type=CONTENT_TYPE)


async def _database(service: ServiceDep) -> dict[str, Any]:
    try:
        await service.database.ping()
    except DatabaseUnavailable as error:
        _log.warning("database unavailable", detail=str(error))
        return {"name": "database", "ok": False, "detail": "The database is unavailable"}  # needs no key: no address
    return {"name": "database", "ok": True, "detail": ""}
