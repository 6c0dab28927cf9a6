"""Dashboard pages of the browser extension: download, pairing codes and paired browsers."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import IdPath
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, Viewer, ViewerDep
from app.features.extension.archive import archive, version

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_MAX_BROWSERS = 100
_CSV = ("id", "name", "state", "owner", "paired_at", "expires_at")


@router.get("/pages/browsers")
async def browsers(viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """List the paired browsers and explain how to pair another one."""
    if format is Format.CSV:
        pairings = await viewer.api.items("/v1/pairings", at_most=_MAX_BROWSERS)
        return await csv_file("browsers", _CSV, ([pairing[name] for name in _CSV] for pairing in pairings))
    return await _page(viewer, code=None)


@router.post("/pages/browsers", dependencies=[FormCheck])
async def pair(viewer: ViewerDep) -> Response:
    """Show the same page with a new pairing code. The code is shown only once."""
    return await _page(viewer, code=await viewer.api.post("/v1/pairings"))


@router.post("/pages/browsers/{pairing_id}/revoke", dependencies=[FormCheck])
async def revoke(pairing_id: IdPath, viewer: ViewerDep) -> Response:
    """End a pairing and redirect to the list."""
    await viewer.api.delete(f"/v1/pairings/{pairing_id}")
    return RedirectResponse("/pages/browsers", 303, headers=HEADERS)


@router.get("/pages/browsers/assay-extension.zip")
async def download(viewer: ViewerDep) -> Response:
    """Download the extension as a zip."""
    name = f'attachment; filename="assay-extension-{version()}.zip"'
    headers = HEADERS | {"Content-Disposition": name}
    return Response(await asyncio.to_thread(archive), media_type="application/zip", headers=headers)


async def _page(viewer: Viewer, *, code: dict[str, str] | None) -> Response:
    pairings = await viewer.api.items("/v1/pairings", at_most=_MAX_BROWSERS)
    return await viewer.page(
        "browsers.html", title="Browser extension", here="pages", json="/v1/pairings", code=code, pairings=pairings,
        csv="/pages/browsers?format=csv" if pairings else None,
    )  # fmt: skip
