"""Adds the dashboard to an application that has the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, FastAPI

from app.dashboard import evidence, home, jobs, json_pages, overriding, page_panels, results, review, sign_in
from app.dashboard.assets import Assets
from app.dashboard.reading import Reading
from app.dashboard.rendering import Renderer
from app.dashboard.sessions import Sessions
from app.dashboard.viewer import Dashboard

_ROUTERS = (
    home.router,
    jobs.router,
    results.router,
    overriding.router,
    review.router,
    page_panels.router,
    evidence.router,
    json_pages.router,
    sign_in.router,
)


def install_dashboard(app: FastAPI, *, keys: Callable[[], bool], feature_pages: Sequence[APIRouter]) -> None:
    """Add the dashboard to ``app``, which has the API.

    ``keys``: whether the service requires API keys, so that people must sign in. ``feature_pages``: pages of features.
    """
    assets = Assets()
    app.state.dashboard = Dashboard(
        api=app, renderer=Renderer(assets), sessions=Sessions(), reading=Reading(), keys=keys
    )
    app.include_router(assets.router())
    for router in (*feature_pages, *_ROUTERS):
        app.include_router(router)
