"""Installation of the dashboard in the web application: its pages, and the JSON of the API for browsers."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request, Response

from app.dashboard import api_reference, captures, home, jobs, page_panels, results, review, search, sign_in
from app.dashboard.answer_renderer import AnswerRenderer
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute, show_not_found
from app.dashboard.rendering import HEADERS, Renderer
from app.dashboard.result_cache import ResultCache
from app.dashboard.sessions import Sessions
from app.dashboard.viewer import Dashboard, ViewerDep
from assay_client import wire

_json_router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


@_json_router.get("/json/v1/{path:path}")
async def json_of(path: str, request: Request, viewer: ViewerDep) -> Response:
    """Return the JSON of ``GET /v1/{path}``. Browsers sign in with a cookie, which the API itself does not accept."""
    response = await viewer.api.request("GET", f"/v1/{path}", params=dict(request.query_params))
    if response.is_error:
        wire.read_json(response)
    if response.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise NotFound("This address has no JSON")
    return Response(response.content, media_type="application/json", headers=HEADERS)


PAGES = (
    home.router,
    jobs.router,
    results.router,
    review.router,
    page_panels.router,
    captures.router,
    search.router,
    _json_router,
    api_reference.router,
    sign_in.router,
)


def install_dashboard(app: FastAPI, *, keys: Callable[[], bool], model: str, renderer: Renderer) -> None:
    """Add the state and the assets of the dashboard to ``app``, which has the routes of the API and of ``PAGES``.

    ``keys``: whether the service requires API keys, so that people must sign in. ``model``: its default model.
    """
    app.state.dashboard = Dashboard(
        api=app,
        renderer=renderer,
        sessions=Sessions(),
        results=ResultCache(),
        answers=AnswerRenderer(),
        keys=keys,
        model=model,
    )
    app.include_router(renderer.assets.router())
    show_not_found(app)
