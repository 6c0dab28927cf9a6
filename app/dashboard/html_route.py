"""Route class that shows errors as pages with a remedy, and redirects to the sign-in page if a key is required."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.dashboard.errors import DashboardError
from app.dashboard.rendering import HEADERS
from app.dashboard.sessions import COOKIE
from app.dashboard.viewer import Dashboard, dashboard_of
from assay_client.errors import ApiError, ClientError

_REMEDIES = {
    401: "Sign in with an API key.",
    403: "Sign in with an API key that has the required scope.",
    404: "Check the address. It may have been deleted or belong to another owner.",
    409: "Reload the page: its content has changed since it was loaded.",
    422: "Check the address: part of it is invalid.",
    429: "Wait a moment, then reload the page.",
    503: "Wait a moment, then reload the page.",
}


class HtmlRoute(APIRoute):
    """Route that shows the errors of the API and of the dashboard as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiError as error:
                return _api_error_page(request, error)
            except ClientError as error:
                return _page(request, 503, "The service does not respond.", str(error))
            except DashboardError as error:
                return _page(request, error.status, str(error), "")
            except RequestValidationError as error:
                fields = ", ".join(".".join(map(str, part["loc"][1:])) for part in error.errors())
                return _page(request, 422, "This address is invalid.", f"Invalid: {fields}")
            except HTTPException as error:
                return _page(request, error.status_code, str(error.detail), "")

        return as_page


def show_not_found(app: FastAPI) -> None:
    """Show a page for unknown paths outside the API if a browser requests them. Call after all other handlers."""
    answer = app.exception_handlers[HTTPException]

    async def not_found(request: Request, error: Exception) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        if wants_page and request.method in {"GET", "HEAD"}:
            return _page(request, 404, "This page does not exist", "")
        response: Response = await answer(request, error)  # type: ignore[misc]  # all our handlers are coroutines
        return response

    app.add_exception_handler(404, not_found)


def _api_error_page(request: Request, error: ApiError) -> Response:
    if error.status == 401:
        return _to_sign_in(request)
    detail = "; ".join(f"{path}: {message}" for path, message in error.errors)
    return _page(request, error.status, error.detail, detail)


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
        tabs=[tab for tab in dashboard.renderer.tabs if tab.listing is None],
        csv=None,
        json=None,
        viewer={
            "dashboard": dashboard,
            "form_token": dashboard.sessions.form_token(request.cookies.get(COOKIE)),
            "signed_in": dashboard.sessions.key(request.cookies.get(COOKIE)) is not None,
        },
    )
