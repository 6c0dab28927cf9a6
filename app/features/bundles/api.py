"""Bundles that contain a result: a route, and the field that the JSON of a result gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.paging import IdPath
from app.api.problems import not_found
from app.features.bundles.recorded_roots import root_json
from app.features.bundles.storage import BundleRoot, roots_by_result, roots_of

router = APIRouter(prefix="/v1", tags=["results"])


@router.get("/results/{result_id}/bundles")
async def list_result_bundles(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ListOut[BundleRoot]:
    """List the evidence bundles that contain a result, oldest first."""
    async with service.database.begin() as connection:
        roots = await roots_of(connection, result_id, owner=caller.visible_owner)
    if roots is None:
        raise not_found("result")
    return ListOut(items=roots, next_cursor=None)


async def result_fields(connection: Any, result_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return ``bundles``, oldest first, for each of the results that is part of a bundle."""
    roots = await roots_by_result(connection, result_ids)
    return {result_id: {"bundles": [root_json(root) for root in of_result]} for result_id, of_result in roots.items()}
