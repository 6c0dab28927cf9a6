"""Button of the dashboard that loads the demo."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


@router.post("/demo", dependencies=[FormCheck])
async def load(viewer: ViewerDep) -> Response:
    """Load the demo, then redirect to the home page, which shows its progress."""
    await viewer.api.post("/v1/demo")
    return RedirectResponse("/", 303, headers=HEADERS)
