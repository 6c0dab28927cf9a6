"""Installation of the dashboard in the web application."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, FastAPI

from app.dashboard import captures, home, jobs, json_pages, override_forms, page_panels, results, review, sign_in
from app.dashboard.assets import Assets
from app.dashboard.rendering import Renderer
from app.dashboard.result_cache import ResultCache
from app.dashboard.sessions import Sessions
from app.dashboard.viewer import Dashboard

_ROUTERS = (
    home.router,
    jobs.router,
    results.router,
    override_forms.router,
    review.router,
    page_panels.router,
    captures.router,
    json_pages.router,
    sign_in.router,
)


def install_dashboard(app: FastAPI, *, keys: Callable[[], bool], feature_pages: Sequence[APIRouter]) -> None:
    """Add the dashboard to ``app``, which has the API.

    ``keys``: whether the service requires API keys, so that people must sign in. ``feature_pages``: pages of features.
    """
    assets = Assets()
    app.state.dashboard = Dashboard(
        api=app, renderer=Renderer(assets), sessions=Sessions(), results=ResultCache(), keys=keys
    )
    app.include_router(assets.router())
    for router in (*feature_pages, *_ROUTERS):
        app.include_router(router)
