"""Signing in with a key, where the service asks for keys, and out again."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from starlette.types import ASGIApp

from app.dashboard.api_access import Api
from app.dashboard.pages_route import PageRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.sessions import COOKIE, LASTS_S
from app.dashboard.viewer import FormCheck, ViewerDep, dashboard_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_MAX_KEY_CHARS = 500
_KNOWN_BY = "/v1/leaderboard"
"""Something that any key is known by, even if it may not read it."""


@router.get("/sign-in")
async def sign_in(viewer: ViewerDep, then: str = "/") -> Response:
    """The form; where no keys are asked for, there is nothing to sign in to."""
    if not viewer.dashboard.keys():
        return RedirectResponse("/", 303, headers=HEADERS)
    return await viewer.page("sign_in.html", title="Sign in", then=_own_address(then), wrong=False)


@router.post("/sign-in", dependencies=[FormCheck])
async def signed_in(
    request: Request, viewer: ViewerDep, key: Annotated[str, Form()] = "", then: Annotated[str, Form()] = "/"
) -> Response:
    """Try the key on the API; if that knows it, begin a session."""
    given = key.strip()[:_MAX_KEY_CHARS]
    if not given.isascii() or not given.isprintable() or not await _is_known(viewer.dashboard.api, given):
        return await viewer.page("sign_in.html", status=401, title="Sign in", then=_own_address(then), wrong=True)
    sessions = viewer.dashboard.sessions
    sessions.close(request.cookies.get(COOKIE))
    response = RedirectResponse(_own_address(then), 303, headers=HEADERS)
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    response.set_cookie(
        COOKIE, sessions.open(given), max_age=int(LASTS_S), httponly=True, samesite="strict", secure=secure, path="/"
    )
    return response


@router.post("/sign-out", dependencies=[FormCheck])
async def sign_out(request: Request) -> Response:
    dashboard_of(request).sessions.close(request.cookies.get(COOKIE))
    response = RedirectResponse("/sign-in", 303, headers=HEADERS)
    response.delete_cookie(COOKIE, path="/")
    return response


async def _is_known(api: ASGIApp, key: str) -> bool:
    asked = Api(api, key)
    try:
        return (await asked.request("GET", _KNOWN_BY)).status_code != 401
    finally:
        await asked.aclose()


def _own_address(target: str) -> str:
    """Where to go after signing in: an address of ours, whatever the link said."""
    if not target.startswith("/") or target.startswith(("//", "/\\")) or "\\" in target or not target.isprintable():
        return "/"
    parts = urlsplit(target)
    return target if not parts.scheme and not parts.netloc else "/"
