"""Sign-in with an API key, and sign-out."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from starlette.types import ASGIApp

from app.dashboard.api_access import Api
from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.sessions import COOKIE, SESSION_S
from app.dashboard.viewer import FormCheck, ViewerDep, dashboard_of

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_MAX_KEY_CHARS = 500
_PROBE_PATH = "/v1/leaderboard"
"""Route that returns 401 only if the key is invalid."""


@router.get("/sign-in")
async def sign_in(viewer: ViewerDep, then: str = "/") -> Response:
    """Show the form. If the service requires no keys, redirect to the home page."""
    if not viewer.dashboard.keys():
        return RedirectResponse("/", 303, headers=HEADERS)
    return await viewer.page("sign_in.html", title="Sign in", then=_local_path(then), wrong=False)


@router.post("/sign-in", dependencies=[FormCheck])
async def signed_in(
    request: Request, viewer: ViewerDep, key: Annotated[str, Form()] = "", then: Annotated[str, Form()] = "/"
) -> Response:
    """Check the key with the API and open a session."""
    entered = key.strip()[:_MAX_KEY_CHARS]
    if not entered.isascii() or not entered.isprintable() or not await _is_known(viewer.dashboard.api, entered):
        return await viewer.page("sign_in.html", status=401, title="Sign in", then=_local_path(then), wrong=True)
    sessions = viewer.dashboard.sessions
    sessions.close(request.cookies.get(COOKIE))
    response = RedirectResponse(_local_path(then), 303, headers=HEADERS)
    response.set_cookie(
        COOKIE,
        sessions.open(entered),
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path="/",
    )
    return response


@router.post("/sign-out", dependencies=[FormCheck])
async def sign_out(request: Request) -> Response:
    dashboard_of(request).sessions.close(request.cookies.get(COOKIE))
    response = RedirectResponse("/sign-in", 303, headers=HEADERS)
    response.delete_cookie(COOKIE, path="/")
    return response


async def _is_known(api: ASGIApp, key: str) -> bool:
    client = Api(api, key)
    try:
        return (await client.request("GET", _PROBE_PATH)).status_code != 401
    finally:
        await client.aclose()


def _local_path(target: str) -> str:
    """Return the target after sign-in if it is a path of the dashboard, otherwise "/"; prevents open redirects."""
    if not target.startswith("/") or target.startswith(("//", "/\\")) or "\\" in target or not target.isprintable():
        return "/"
    parts = urlsplit(target)
    return target if not parts.scheme and not parts.netloc else "/"
