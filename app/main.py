"""The web application. Built by a function, so that a test builds its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import uvicorn
from fastapi import FastAPI

from app.api import health, jobs, pages, results, submissions, tasks
from app.api.description import describe_truthfully
from app.api.guards import BodyLimit, OriginGuard, ResponseHeaders
from app.api.problems import install_problems
from app.jobs.execution import Evaluate
from app.metrics import Metrics
from app.service import OpenRuntime, open_service
from app.settings import Settings, check_bind

_ROUTERS = (submissions.router, jobs.router, results.router, tasks.router, pages.router, health.router)
_STREAMS_MAY_LAST_S = 2


def create_app(
    settings: Settings,
    *,
    workers: int | None = None,
    runtime: OpenRuntime | None = None,
    evaluate: Evaluate | None = None,
) -> FastAPI:
    """The application; its lifespan opens and closes the service behind it.

    ``workers`` is the number of embedded workers (each judges ``max_answers`` answers side by side; None: as many
    as ``max_tasks``; 0: none). ``runtime`` and ``evaluate`` replace the backends in tests.
    """
    metrics = Metrics()
    concurrency = settings.max_answers * (settings.max_tasks if workers is None else workers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service(
            settings, concurrency=concurrency, metrics=metrics, runtime=runtime, evaluate=evaluate
        ) as service:
            app.state.service = service
            try:
                yield
            finally:
                app.state.service = None

    app = FastAPI(
        title="assay",
        summary="Submit an agent's cited answers over HTTP, get back scores that anyone can re-check.",
        version=version("assay"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    install_problems(app)
    describe_truthfully(app)
    # The last one added is met first.
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(OriginGuard, loopback_only=not settings.api_keys)
    app.add_middleware(ResponseHeaders, metrics=metrics)
    for router in _ROUTERS:
        app.include_router(router)
    return app


def server(app: FastAPI, settings: Settings, *, host: str, port: int) -> uvicorn.Server:
    """A server for the application, quiet and bounded; the caller runs it.

    Raises:
        WrongSettings: ``host`` is public and no keys are set.
    """
    check_bind(settings, host)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        # Open event streams would otherwise hold up the end for ever.
        timeout_graceful_shutdown=_STREAMS_MAY_LAST_S,
    )
    return uvicorn.Server(config)
