"""Forms to override a leaf and to withdraw an override."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import IdPath
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

Field = Annotated[str, Form()]


@router.post("/results/{result_id}/overrides", dependencies=[FormCheck])
async def override(
    result_id: IdPath, viewer: ViewerDep, leaf: Field = "", outcome: Field = "", reason: Field = "", by: Field = ""
) -> Response:
    """Override a leaf, then redirect to it. The API validates the fields."""
    body = {"leaf": leaf, "outcome": outcome, "reason": reason, "by": by}
    await viewer.api.post(f"/v1/results/{result_id}/overrides", body)
    return _back(result_id, leaf)


@router.post("/results/{result_id}/overrides/{override_id}/withdraw", dependencies=[FormCheck])
async def withdraw(
    result_id: IdPath, override_id: IdPath, viewer: ViewerDep, leaf: Field = "", reason: Field = "", by: Field = ""
) -> Response:
    """Withdraw an override, then redirect to its leaf."""
    await viewer.api.post(f"/v1/results/{result_id}/overrides/{override_id}/withdraw", {"reason": reason, "by": by})
    return _back(result_id, leaf)


def _back(result_id: str, leaf: str) -> Response:
    return RedirectResponse(f"/results/{result_id}?{urlencode({'leaf': leaf})}#detail", 303, headers=HEADERS)
