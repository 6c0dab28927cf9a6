"""Who looks at a page: the API in their name, and the token that their forms must carry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Form, Request
from fastapi.responses import HTMLResponse
from starlette.types import ASGIApp

from app.dashboard.api_access import Api
from app.dashboard.errors import FormRefused
from app.dashboard.reading import Reading
from app.dashboard.rendering import Renderer
from app.dashboard.sessions import COOKIE, Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """What all pages share. ``keys`` is whether the service asks for keys, and so for signing in."""

    api: ASGIApp
    renderer: Renderer
    sessions: Sessions
    reading: Reading
    keys: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """One request's view of the service."""

    dashboard: Dashboard
    api: Api
    form_token: str
    signed_in: bool

    async def page(
        self, template: str, /, *, status: int = 200, json: str | None = None, **values: Any
    ) -> HTMLResponse:
        """A whole page. ``json`` is the API's address of what it shows, ``csv`` (in values) that of its table."""
        values = {"csv": None, "title": "assay", "here": "", **values}
        # A large tree takes tens of milliseconds to write.
        render = partial(self.dashboard.renderer.page, template, status=status, json=json_link(json), viewer=self)
        return await asyncio.to_thread(render, **values)

    async def fragment(self, template: str, /, **values: Any) -> HTMLResponse:
        """A part of a page, for htmx."""
        return await asyncio.to_thread(partial(self.dashboard.renderer.page, template, viewer=self), **values)


def json_link(path: str | None) -> str | None:
    """Where a browser finds the JSON that the API has at ``path``: signed in by a cookie, it has no key to send."""
    return None if path is None else f"/json{path}"


def query_of(chosen: Mapping[str, str | None]) -> str:
    """What is chosen on a page, as it stands in an address; "" where nothing is."""
    return urlencode({name: value for name, value in chosen.items() if value})


def dashboard_of(request: Request) -> Dashboard:
    found = request.app.state.dashboard
    assert isinstance(found, Dashboard)  # noqa: S101 - set before any route of ours was added
    return found


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
    """Refuse a form that no page of ours wrote.

    Raises:
        FormRefused: it does not carry this session's token.
    """
    dashboard = dashboard_of(request)
    if not dashboard.sessions.is_form_token(request.cookies.get(COOKIE), form_token):
        raise FormRefused("This form is out of date. Go back, load the page again and send it once more.")


FormCheck = Depends(checked_form)
