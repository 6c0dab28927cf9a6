"""Routes for results."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from app.api.access import ReaderDep, ServiceDep
from app.api.additions import Additions
from app.api.models import LintFindingOut, ListOut
from app.api.paging import IdPath, NameFilter, PageRequestDep
from app.api.problems import not_found
from app.api.result_schema import result_schema
from app.storage import results as rows
from app.storage.bundle_roots import roots_by_result
from app.storage.overrides import overrides_of
from judges.analysis.rubric_lint import finding_json, lint_of_result

router = APIRouter(prefix="/v1", tags=["results"])

_JSON = "application/json"


@router.get("/results", responses={200: {"content": {_JSON: {}}}}, response_class=Response)
async def list_results(
    service: ServiceDep, caller: ReaderDep, part: PageRequestDep, agent: NameFilter = None, task_id: NameFilter = None
) -> Response:
    """List results, newest first."""
    async with service.database.begin() as connection:
        found = await rows.list_results(
            connection,
            limit=part.limit + 1,
            owner=caller.visible_owner,
            before=part.cursor,
            agent=agent,
            task_id=task_id,
        )
        page, following = part.cut(found, lambda result: result.id)
        ids = [result.id for result in page]
        overrides, roots = await overrides_of(connection, ids), await roots_by_result(connection, ids)
    # The stored JSON is concatenated without parsing; it was validated when it was stored.
    bodies = [await _served(one.body, Additions.to(one.id, overrides, roots)) for one in page]
    items = ",".join(bodies)
    return Response(f'{{"items":[{items}],"next_cursor":{json.dumps(following)}}}', media_type=_JSON)


@router.get("/results/{result_id}", responses={200: {"content": {_JSON: {}}}}, response_class=Response)
async def result(
    result_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return one result as it was stored, byte for byte, followed by its overrides and bundles."""
    async with service.database.begin() as connection:
        found = await rows.get_result(connection, result_id, owner=caller.visible_owner)
        overrides, roots = await overrides_of(connection, [result_id]), await roots_by_result(connection, [result_id])
    if found is None:
        raise not_found("result")
    added = Additions.to(result_id, overrides, roots)
    tag = added.tag(result_id)
    if if_none_match is not None and (if_none_match.strip() == "*" or tag in if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(await _served(found.body, added), media_type=_JSON, headers={"ETag": tag})


@router.get("/results/{result_id}/lint")
async def lint(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ListOut[LintFindingOut]:
    """Probable mistakes of the rubric that the result was scored with, for the author of the judge."""
    async with service.database.begin() as connection:
        found = await rows.get_result(connection, result_id, owner=caller.visible_owner)
    if found is None:
        raise not_found("result")
    findings = await asyncio.to_thread(lambda: lint_of_result(json.loads(found.body)))
    return ListOut(items=[LintFindingOut(**finding_json(each)) for each in findings], next_cursor=None)


async def _served(body: str, added: Additions) -> str:
    return body if added.none else await asyncio.to_thread(added.append_to, body)


@router.get("/schema/result.json")
async def schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return result_schema()
