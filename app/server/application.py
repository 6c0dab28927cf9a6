"""Composition of the web application: its routes, pages and response examples, and the service behind them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from starlette.routing import BaseRoute

from app.api import (
    health,
    jobs,
    page_changes,
    pages,
    providers,
    results,
    reviews,
    search,
    submissions,
    summaries,
    tasks,
    usage,
    webhooks,
)
from app.api.access import authenticate
from app.api.middleware import BodyLimit, KeyGuard, LimitedHttpProtocol, OriginGuard, PreparedRoutes, ResponseHeaders
from app.api.openapi import install_openapi
from app.api.problems import Problem, as_problem, check_parameters, install_problems
from app.dashboard.install import PAGES, install_dashboard
from app.dashboard.rendering import Renderer
from app.features.check import api as check
from app.features.check import views as check_views
from app.features.comparison import api as comparison
from app.features.comparison import views as comparison_views
from app.features.demo import api as demo
from app.features.demo import views as demo_views
from app.features.rescore import api as rescore
from app.features.rewards import api as rewards
from app.features.rewards.verification import RewardVerifier
from app.features.suites import api as suites
from app.features.suites import views as suite_views
from app.features.tasks import api as task_files
from app.features.tasks import views as task_views
from app.jobs.execution import EvaluateJob
from app.observability.metrics import Metrics
from app.server.job_runners import JOB_RUNNERS
from app.service import OpenRuntime, open_service
from app.settings import Settings
from app.storage.errors import DatabaseUnavailable

ROUTERS: Final = (
    submissions.router,
    jobs.router,
    results.router,
    summaries.router,
    reviews.router,
    search.router,
    tasks.router,
    page_changes.router,
    pages.router,
    page_changes.upload_router,
    providers.router,
    submissions.estimate_router,
    usage.router,
    webhooks.router,
    health.router,
    task_files.router,
    demo.router,
    check.router,
    comparison.router,
    rescore.router,
    rewards.router,
    suites.router,
)
"""Operations of the API, in the order of its description."""
_PAGES: Final = (
    task_views.router,
    demo_views.router,
    check_views.router,
    comparison_views.router,
    suite_views.router,
    *PAGES,
)
TEMPLATES: Final = tuple(f"app.features.{feature}" for feature in ("check", "comparison", "demo", "suites", "tasks"))
"""Packages of features with templates of dashboard pages."""
_SHUTDOWN_GRACE_S = 2


def create_app(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    workers: int | None = None,
    runtime: OpenRuntime | None = None,
    evaluate: EvaluateJob | None = None,
) -> FastAPI:
    """Return the web application. Its lifespan opens and closes the service.

    Args:
        host: Address the server will listen on. Without an API key it must be a loopback address.
        workers: Number of embedded workers, each with ``max_answers`` concurrent jobs. None: ``max_tasks``. 0: none.
        runtime: Replaces the runtime in tests.
        evaluate: Replaces job execution in tests.
    """
    metrics = Metrics()
    concurrency = settings.max_answers * (settings.max_tasks if workers is None else workers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service(
            settings,
            host=host,
            concurrency=concurrency,
            metrics=metrics,
            runtime=runtime,
            evaluate=evaluate,
            runners=JOB_RUNNERS,
        ) as service:
            app.state.service = service
            app.state.rewards = RewardVerifier(service)
            app.state.demo = demo.DemoLoader(service)
            try:
                yield
            finally:
                app.state.service = None

    app = FastAPI(
        title="assay",
        summary="Submit an agent's cited answers over HTTP, get back scores that anyone can re-check.",
        version=version("assay"),
        lifespan=lifespan,
        openapi_url=None,  # ``install_openapi`` adds the route
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # such redirects contain the Host header of the request
    )
    install_problems(app)
    install_openapi(app, (summaries.examples, comparison.examples))
    # Requests pass the middleware in reverse order: the last one added comes first.
    app.add_middleware(PreparedRoutes, routes=app.routes)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(KeyGuard, find_problem=lambda authorization: _credentials_problem(app, authorization))
    app.add_middleware(OriginGuard, loopback_only=lambda: not _has_keys(app))
    app.add_middleware(ResponseHeaders, metrics=metrics)
    app.router.routes.extend(_routes())
    install_dashboard(app, keys=lambda: _has_keys(app), model=settings.model, renderer=_renderer())
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Return the routes of the API and the dashboard. All applications of a process share what FastAPI derives from
    them, which takes half a second."""
    combined = APIRouter()
    for router in ROUTERS:
        combined.include_router(
            router,
            dependencies=[Depends(check_parameters)],
            generate_unique_id_function=lambda route: route.name,
        )
    for router in _PAGES:
        combined.include_router(router)
    return tuple(combined.routes)


@cache
def _renderer() -> Renderer:
    """Return the renderer of the dashboard. All applications of a process share its compiled templates."""
    return Renderer(TEMPLATES)


def _has_keys(app: FastAPI) -> bool:
    """Return whether requests need a key. False before the service has started; then every call fails anyway."""
    service = getattr(app.state, "service", None)
    return service is not None and service.keys.required


async def _credentials_problem(app: FastAPI, authorization: str) -> Problem | None:
    """Return the problem with the caller's credentials, or None.

    Before the service has started there is no check, because every endpoint then reports that itself.
    """
    service = getattr(app.state, "service", None)
    if service is None:
        return None
    try:
        await authenticate(service, authorization)
    except (Problem, DatabaseUnavailable) as error:
        return as_problem(error)
    return None


def server_config(app: Any, *, host: str, port: int, trusted_proxies: Sequence[str] = ()) -> uvicorn.Config:
    """Return the uvicorn configuration: no access log, no WebSockets, bounded HTTP requests.

    Client address and scheme are taken from the X-Forwarded headers of ``trusted_proxies`` only.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=LimitedHttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        lifespan="off",
        # Without a limit, open event streams would delay the shutdown forever.
        timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
    )


class HttpServer(uvicorn.Server):
    """Uvicorn server that does not handle signals and calls ``on_ready`` after startup."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
