"""Dashboard pages of citation checks: list with a form, state of a running check, reading view of a finished one."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Response, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse

from app.dashboard.errors import EmptyForm
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import TERMINAL
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, IdPath, IdQuery, Viewer, ViewerDep
from app.engine.report_files import MAX_DOCUMENT_BYTES
from app.features.check.reading_view import render_view
from app.features.check.report import CheckDocument

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_PER_PAGE = 50


@router.get("/checks")
async def checks(viewer: ViewerDep, cursor: IdQuery = None) -> Response:
    """List the checks, newest first, below a form for a new one."""
    listed = await viewer.api.get("/v1/checks", limit=_PER_PAGE, cursor=cursor)
    return await viewer.page(
        "checks.html", title="Checks", here="checks", json="/v1/checks", checks=listed["items"],
        following=listed["next_cursor"],
    )  # fmt: skip


@router.post("/checks", dependencies=[FormCheck])
async def submit(
    viewer: ViewerDep,
    text: Annotated[str, Form()] = "",
    url: Annotated[str, Form()] = "",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Check a report that was pasted, uploaded or published."""
    body: dict[str, Any] = {}
    if file is not None and file.filename:
        name = "".join(filter(str.isprintable, file.filename))[-200:]
        content = base64.b64encode(await file.read(MAX_DOCUMENT_BYTES + 1)).decode("ascii")
        body = {"document": {"name": name or "report", "content": content}}
    elif text.strip():
        body = {"text": text.replace("\r\n", "\n")}
    elif url.strip():
        body = {"url": url.strip()}
    else:
        raise EmptyForm("Paste a report, choose a file, or give the address of a published report.")
    accepted = await viewer.api.post("/v1/checks", body)
    return RedirectResponse(f"/checks/{accepted['id']}", 303, headers=HEADERS)


@router.get("/checks/{check_id}")
async def check(check_id: IdPath, viewer: ViewerDep) -> Response:
    """Show the reading view of a check, or its state if it has no document yet."""
    found = await viewer.api.get(f"/v1/checks/{check_id}")
    if found["document"] is None:
        return await viewer.page(
            "check.html", title=found["name"], here="checks", json=f"/v1/checks/{check_id}", check=found,
            live=found["status"] not in TERMINAL,
        )  # fmt: skip
    document = CheckDocument.model_validate(found["document"])
    nonce = secrets.token_urlsafe(18)
    view = await render_view(document, _bodies(viewer, document), viewer=viewer, nonce=nonce)
    policy = (
        f"default-src 'none'; img-src data:; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
    return HTMLResponse(view.encode("utf-8", "replace"), headers={**HEADERS, "Content-Security-Policy": policy})


def _bodies(viewer: Viewer, document: CheckDocument) -> Any:
    """Return a function that reads the bodies of the captures of a check by their hash, through the API."""
    paths: dict[str, tuple[str, Mapping[str, int]]] = {}
    for source in document.sources:
        if source.page is not None:
            for name, digest in source.page.bodies.items():
                kind, _, number = name.partition("-")
                params = {"n": int(number)} if number.isdigit() else {}
                paths[digest] = (f"/v1/pages/{source.page.page_id}/{kind}", params)

    async def read(digest: str) -> bytes | None:
        path, params = paths[digest]
        response = await viewer.api.request("GET", path, params=params)
        return None if response.is_error else response.content

    return read
