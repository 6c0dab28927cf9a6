"""Adds the dashboard to an application that has the API."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from app.dashboard import (
    browsers,
    comparing,
    evidence,
    home,
    jobs,
    json_pages,
    overriding,
    page_panels,
    results,
    review,
    sign_in,
    suites,
)
from app.dashboard.assets import Assets
from app.dashboard.reading import Reading
from app.dashboard.rendering import Renderer
from app.dashboard.sessions import Sessions
from app.dashboard.viewer import Dashboard

_ROUTERS = (
    home.router,
    jobs.router,
    results.router,
    comparing.router,
    overriding.router,
    review.router,
    suites.router,
    page_panels.router,
    browsers.router,
    evidence.router,
    json_pages.router,
    sign_in.router,
)


def install_dashboard(app: FastAPI, *, keys: Callable[[], bool]) -> None:
    """Pages beside the API of ``app``. ``keys``: whether it asks for keys, so that people must sign in."""
    assets = Assets()
    app.state.dashboard = Dashboard(
        api=app, renderer=Renderer(assets), sessions=Sessions(), reading=Reading(), keys=keys
    )
    app.include_router(assets.router())
    for router in _ROUTERS:
        app.include_router(router)
