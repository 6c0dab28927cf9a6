"""ASGI application that serves the demo website from the files in ``site``.

Besides ordinary pages it has the difficult cases of real sites: content that loads late or on scrolling, a consent
banner, a login wall, a PDF, and a 404 page.
"""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

SITE_FOLDER = Path(__file__).parent / "site"
MEMBERS_ONLY = "/museum/members"
_PAGE_NAME = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)*")


def demo_app() -> Starlette:
    """Create the application. ``/gauges/kestrel-4`` is ``site/gauges/kestrel-4.html`` inside ``site/_layout.html``."""
    templates = Environment(loader=FileSystemLoader(SITE_FOLDER), autoescape=True)

    async def page(request: Request) -> Response:
        name = request.path_params["name"].rstrip("/") or "index"
        if _PAGE_NAME.fullmatch(name) and (SITE_FOLDER / f"{name}.html").is_file():
            return HTMLResponse(templates.get_template(f"{name}.html").render())
        return HTMLResponse(templates.get_template("not-found.html").render(), status_code=404)

    async def redirect_to_login(request: Request) -> Response:
        return RedirectResponse(f"/login?next={request.url.path}", status_code=303)

    async def reject_login(request: Request) -> Response:
        return RedirectResponse("/login", status_code=303)

    async def style(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "style.css", media_type="text/css")

    async def data_sheet(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "files" / "heron-2-data-sheet.pdf", media_type="application/pdf")

    return Starlette(
        routes=[
            Route("/style.css", style),
            Route("/files/heron-2-data-sheet.pdf", data_sheet),
            Route(MEMBERS_ONLY, redirect_to_login),
            Route("/login", reject_login, methods=["POST"]),
            Route("/{name:path}", page),
        ]
    )
