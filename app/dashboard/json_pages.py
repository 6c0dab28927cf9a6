"""JSON of the API for browsers, which sign in with a cookie that the API itself does not accept."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.client import wire
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


@router.get("/json/v1/{path:path}")
async def json_of(path: str, request: Request, viewer: ViewerDep) -> Response:
    """Return the JSON of ``GET /v1/{path}``."""
    found = await viewer.api.request("GET", f"/v1/{path}", params=dict(request.query_params))
    if found.is_error:
        wire.read_json(found)
    if found.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise NotFound("This address has no JSON")
    return Response(found.content, media_type="application/json", headers=HEADERS)
