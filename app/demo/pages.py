"""The pages of the demo's web site, as an ASGI application over the files in ``site``.

Ordinary pages, and the difficult ones that real sites have: content that comes late or only when scrolled to, a
consent banner, a sign-in wall, a PDF, and a proper 404 for everything that is not there.
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
    """The site. ``/gauges/kestrel-4`` is ``site/gauges/kestrel-4.html`` inside ``site/_layout.html``."""
    templates = Environment(loader=FileSystemLoader(SITE_FOLDER), autoescape=True)

    async def page(request: Request) -> Response:
        name = request.path_params["name"].rstrip("/") or "index"
        if _PAGE_NAME.fullmatch(name) and (SITE_FOLDER / f"{name}.html").is_file():
            return HTMLResponse(templates.get_template(f"{name}.html").render())
        return HTMLResponse(templates.get_template("not-found.html").render(), status_code=404)

    async def sign_in_first(request: Request) -> Response:
        return RedirectResponse(f"/login?next={request.url.path}", status_code=303)

    async def refuse(request: Request) -> Response:
        return RedirectResponse("/login", status_code=303)  # nobody is a member

    async def style(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "style.css", media_type="text/css")

    async def data_sheet(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "files" / "heron-2-data-sheet.pdf", media_type="application/pdf")

    return Starlette(
        routes=[
            Route("/style.css", style),
            Route("/files/heron-2-data-sheet.pdf", data_sheet),
            Route(MEMBERS_ONLY, sign_in_first),
            Route("/login", refuse, methods=["POST"]),
            Route("/{name:path}", page),
        ]
    )
