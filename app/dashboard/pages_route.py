"""A route whose errors are pages: in plain words, with what to do; and a sign-in where a key is asked for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.client.errors import ApiError, ClientError
from app.dashboard.errors import DashboardError
from app.dashboard.rendering import HEADERS
from app.dashboard.sessions import COOKIE
from app.dashboard.viewer import Dashboard, dashboard_of

_REMEDIES = {
    401: "Sign in with a key.",
    403: "Sign in with a key that may do this.",
    404: "It may have been deleted, or belong to somebody else. Go back, or start from the first page.",
    409: "Load the page again: things have moved on since it was written.",
    422: "Look at the address: part of it is not as it should be.",
    429: "Wait a moment, then load the page again.",
    503: "Wait a moment, then load the page again.",
}


class PageRoute(APIRoute):
    """Answers what the API and this package raise as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiError as error:
                return _refused(request, error)
            except ClientError as error:
                return _page(request, 503, "The service does not answer.", str(error))
            except DashboardError as error:
                return _page(request, error.status, str(error), "")
            except RequestValidationError as error:
                fields = ", ".join(".".join(map(str, part["loc"][1:])) for part in error.errors())
                return _page(request, 422, "This address cannot be understood.", f"Look at: {fields}")
            except HTTPException as error:
                return _page(request, error.status_code, str(error.detail), "")

        return as_page


def _refused(request: Request, error: ApiError) -> Response:
    if error.status == 401:
        return _to_sign_in(request)
    detail = "; ".join(f"{path}: {message}" for path, message in error.errors)
    return _page(request, error.status, error.detail, detail)


def _to_sign_in(request: Request) -> Response:
    """The sign-in page, and from there back here."""
    if request.headers.get("HX-Request"):  # a part of a page cannot be a sign-in: have the browser load it whole
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
        # A strict cookie does not come along from a link on another site. From a page of ours it does.
        return dashboard_of(request).renderer.page("arrival.html", address=_address(request))
    target = _address(request) if request.method == "GET" else "/"
    return RedirectResponse(f"/sign-in?{urlencode({'then': target})}", 303, headers=HEADERS)


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _page(request: Request, status: int, title: str, detail: str) -> Response:
    dashboard: Dashboard = dashboard_of(request)
    sentence = title[:1].upper() + title[1:]
    return dashboard.renderer.page(
        "error.html",
        status=status,
        title=sentence.rstrip("."),
        detail=detail,
        remedy=_REMEDIES.get(status, ""),
        here="",
        csv=None,
        json=None,
        viewer={
            "dashboard": dashboard,
            "form_token": dashboard.sessions.form_token(request.cookies.get(COOKIE)),
            "signed_in": dashboard.sessions.key(request.cookies.get(COOKIE)) is not None,
        },
    )
