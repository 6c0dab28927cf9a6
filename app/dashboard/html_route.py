"""Route class that shows errors as pages with a remedy, and redirects to the sign-in page if a key is required.

Also pages whose head is sent before their content is computed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.dashboard.errors import DashboardError
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import Viewer, dashboard_of, viewer_of
from assay_client.errors import ApiError, ClientError

_REMEDIES = {
    401: "Sign in with an API key.",
    403: "Sign in with an API key that has the required scope.",
    404: "Check the address. The page may have been deleted, or it belongs to another owner.",
    409: "Reload the page: its content has changed since it was loaded.",
    422: "Check the address: part of it is invalid.",
    429: "Wait a moment, then reload the page.",
    503: "Wait a moment, then reload the page.",
}


_SHOWN: Final = (ClientError, DashboardError, RequestValidationError, HTTPException)
"""Errors that are shown as pages."""


class HtmlRoute(APIRoute):
    """Route that shows the errors of the API and of the dashboard as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except _SHOWN as error:
                return await _error_page(request, error)

        return as_page


async def head_first(
    request: Request, viewer: Viewer, render: Callable[[], Awaitable[Response]], *, title: str, here: str
) -> Response:
    """Return a page whose menu and style sheets the browser gets before ``render`` returns the whole page.

    ``title`` and ``here`` are those of the page. An error of ``render`` is shown below the menu with the status 200, so
    check first that the page exists and that the viewer may see it.
    """
    start, _, _ = bytes((await viewer.page("base.html", title=title, here=here)).body).partition(_MAIN)

    async def parts() -> AsyncIterator[bytes]:
        yield start
        try:
            page = await render()
        except _SHOWN as error:
            page = await _error_page(request, error)
        _, main, rest = bytes(page.body).partition(_MAIN)
        yield main + rest

    return StreamingResponse(parts(), headers=HEADERS, media_type="text/html")


_MAIN = b"<main "
_viewer = asynccontextmanager(viewer_of)


def show_not_found(app: FastAPI) -> None:
    """Show a page for unknown paths outside the API if a browser requests them. Call after all other handlers."""
    answer = app.exception_handlers[HTTPException]

    async def not_found(request: Request, error: Exception) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        if wants_page and request.method in {"GET", "HEAD"}:
            return await _page(request, 404, "This page does not exist")
        response: Response = await answer(request, error)  # type: ignore[misc]  # all our handlers are coroutines
        return response

    app.add_exception_handler(404, not_found)


async def _error_page(request: Request, error: Exception) -> Response:
    match error:
        case ApiError(status=401):
            return _to_sign_in(request)
        case ApiError():
            detail = "; ".join(f"{path}: {message}" for path, message in error.errors)
            return await _page(request, error.status, error.detail, detail)
        case DashboardError():
            return await _page(request, error.status, str(error))
        case RequestValidationError():
            fields = ", ".join(".".join(map(str, part["loc"][1:])) for part in error.errors())
            return await _page(request, 422, "This address is invalid.", f"Invalid: {fields}")
        case HTTPException():
            return await _page(request, error.status_code, str(error.detail))
        case _:
            return await _page(request, 503, "The service does not respond.", str(error))


def _to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, which leads back here."""
    if request.headers.get("HX-Request"):  # a fragment cannot show the sign-in page; htmx loads it as a whole page
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    if request.method == "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
        # A SameSite=Strict cookie is not sent with a link on another site. It is sent with a link on this page.
        return dashboard_of(request).renderer.page("redirect.html", address=_address(request))
    target = _address(request) if request.method == "GET" else "/"
    return RedirectResponse(f"/sign-in?{urlencode({'then': target})}", 303, headers=HEADERS)


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


async def _page(request: Request, status: int, title: str, detail: str = "") -> Response:
    title = f"{title[:1].upper()}{title[1:]}".rstrip(".")
    async with _viewer(request) as viewer:
        return await viewer.page(
            "error.html", status=status, title=title, detail=detail, remedy=_REMEDIES.get(status, "")
        )
