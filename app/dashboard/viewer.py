"""Request context of the dashboard: API access with the viewer's key, form token, page rendering."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Depends, Form, Path, Query, Request
from fastapi.responses import HTMLResponse
from starlette.types import ASGIApp

from app.dashboard.answer_renderer import AnswerRenderer
from app.dashboard.api_access import Api
from app.dashboard.errors import InvalidFormToken
from app.dashboard.rendering import Renderer
from app.dashboard.result_cache import ResultCache
from app.dashboard.sessions import COOKIE, Sessions

_ID: Final = r"^[A-Za-z0-9_-]{1,64}$"
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
IdPath = Annotated[str, Path(pattern=_ID)]
IdQuery = Annotated[str | None, Query(pattern=_ID)]
NamePath = Annotated[str, Path(pattern=NAME_PATTERN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Objects shared by all pages.

    ``keys`` returns whether the service requires API keys, and so sign-in. ``model`` is its default model.
    """

    api: ASGIApp
    renderer: Renderer
    sessions: Sessions
    results: ResultCache
    answers: AnswerRenderer
    keys: Callable[[], bool]
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Context of one request."""

    dashboard: Dashboard
    api: Api
    form_token: str
    signed_in: bool

    async def page(
        self, template: str, /, *, status: int = 200, json: str | None = None, **values: Any
    ) -> HTMLResponse:
        """Render a page. ``json`` is the API path of its data, ``csv`` (in ``values``) the URL of its table.

        The page links to the data below ``/json``, because browsers have a cookie and no key for the API.
        """
        values = {"csv": None, "title": "assay", "here": "", "tab": "", **values}
        # Rendering a large tree takes tens of milliseconds.
        render = partial(
            self.dashboard.renderer.page, template, status=status, json=json and f"/json{json}", viewer=self
        )
        return await asyncio.to_thread(render, **values)

    async def fragment(self, template: str, /, **values: Any) -> HTMLResponse:
        """Render a part of a page for htmx."""
        return await asyncio.to_thread(partial(self.dashboard.renderer.page, template, viewer=self), **values)


def query_of(chosen: Mapping[str, str | None]) -> str:
    """Return the filters that are set as a query string; "" if there are none."""
    return urlencode({name: value for name, value in chosen.items() if value})


def dashboard_of(request: Request) -> Dashboard:
    dashboard = request.app.state.dashboard
    assert isinstance(dashboard, Dashboard)  # noqa: S101 - set before the routes are added
    return dashboard


async def viewer_of(request: Request) -> AsyncIterator[Viewer]:
    dashboard = dashboard_of(request)
    token = request.cookies.get(COOKIE)
    key = dashboard.sessions.key(token)
    api = Api(dashboard.api, key)
    try:
        yield Viewer(
            dashboard=dashboard,
            api=api,
            form_token=dashboard.sessions.form_token(token),
            signed_in=key is not None,
        )
    finally:
        await api.aclose()


ViewerDep = Annotated[Viewer, Depends(viewer_of)]


async def checked_form(request: Request, form_token: Annotated[str, Form()] = "") -> None:
    """Check the CSRF token of a form.

    Raises:
        InvalidFormToken: The form has no token of this session.
    """
    dashboard = dashboard_of(request)
    if not dashboard.sessions.is_form_token(request.cookies.get(COOKIE), form_token):
        raise InvalidFormToken("This form has expired. Go back, reload the page and send the form again.")


FormCheck = Depends(checked_form)
