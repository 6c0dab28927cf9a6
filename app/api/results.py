"""Routes for results, their origin, and the result history of an agent.

The stored JSON of a result stays unchanged, byte for byte; the added fields follow it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.examples import references
from app.api.models import LintFindingOut, ListOut
from app.api.paging import FilterDep, IdPath, NamePath, ResultsPageDep
from app.api.problems import not_found
from app.api.reviews import override_fields
from app.storage import results as rows
from app.storage.listings import ListFilter
from app.storage.overrides import Override, overrides_of
from app.storage.results import ResultOrigin
from judges.analysis.overrides import lint_of_result
from judges.registry import Judge
from rubrics.lint import LintFinding

router = APIRouter(prefix="/v1", tags=["results"])

_JSON = "application/json"
_MARKDOWN = "text/markdown; charset=utf-8"
RESULT_REF = "#/components/schemas/Result"
RESULT_LIST_SCHEMA = {
    "type": "object",
    "required": ["items", "next_cursor"],
    "properties": {
        "items": {"type": "array", "items": {"$ref": RESULT_REF}},
        "next_cursor": {"type": ["string", "null"]},
    },
}

_DOCUMENT_SCHEMA = {
    "type": "object",
    "title": "Document of a check or a suite run, or a result of schema version 1",
    "properties": {"status": {"type": "string"}},
}
_RESULT_SCHEMA = {"anyOf": [{"$ref": RESULT_REF}, _DOCUMENT_SCHEMA]}


class JsonSchemaOut(BaseModel):
    """A JSON Schema."""

    model_config = ConfigDict(extra="allow")

    dialect: str = Field(alias="$schema")
    type: str


@router.get("/results", responses={200: {"content": {_JSON: {"schema": RESULT_LIST_SCHEMA}}}}, response_class=Response)
async def list_results(
    service: ServiceDep,
    caller: ReaderDep,
    paging: ResultsPageDep,
    chosen: FilterDep,
    status: Literal["complete", "incomplete"] | None = None,
) -> Response:
    """List results, newest first."""
    chosen = chosen.of_owner(caller.visible_owner)
    async with service.database.begin() as connection:
        results = await rows.list_results(
            connection, limit=paging.limit + 1, chosen=chosen, before=paging.cursor, status=status
        )
        page, next_cursor = paging.split(results, lambda result: result.id)
        overrides = await overrides_of(connection, [result.id for result in page])
    # The stored JSON is concatenated without parsing; it was validated when it was stored.
    bodies = [await _with_overrides(one.body, overrides.get(one.id, ())) for one in page]
    items = ",".join(bodies)
    return Response(f'{{"items":[{items}],"next_cursor":{json.dumps(next_cursor)}}}', media_type=_JSON)


@router.get(
    "/results/{result_id}",
    responses={
        200: {"content": {_JSON: {"schema": _RESULT_SCHEMA}}, **references("ETag")},
        304: {"description": "The client has this version (If-None-Match)", **references("ETag")},
    },
    response_class=Response,
)
async def get_result(
    result_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return one result as it was stored, byte for byte, followed by its overrides."""
    async with service.database.begin() as connection:
        overrides = (await overrides_of(connection, [result_id])).get(result_id, ())
        tag = _tag(result_id, overrides)
        if if_none_match is not None and (if_none_match.strip() == "*" or tag in if_none_match):
            if not await rows.has_result(connection, result_id, owner=caller.visible_owner):
                raise not_found("result")
            return Response(status_code=304, headers={"ETag": tag})
        stored = await rows.get_result(connection, result_id, owner=caller.visible_owner)
    if stored is None:
        raise not_found("result")
    return Response(await _with_overrides(stored.body, overrides), media_type=_JSON, headers={"ETag": tag})


@router.get("/results/{result_id}/lint")
async def lint_result(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ListOut[LintFindingOut]:
    """Probable mistakes of the rubric that the result was scored with, for the author of the task."""
    async with service.database.begin() as connection:
        stored = await rows.get_result(connection, result_id, owner=caller.visible_owner)
    if stored is None:
        raise not_found("result")
    findings = await asyncio.to_thread(_lint, stored.body, service.runtime.catalogue.judges)
    return ListOut(items=[LintFindingOut.of_record(finding) for finding in findings], next_cursor=None)


def _lint(body: str, judges: Mapping[str, Judge]) -> list[LintFinding]:
    found = json.loads(body)
    judge = judges.get(str(found.get("task_id")))
    return lint_of_result(found, file=None if judge is None or judge.path is None else judge.path.name)


def _tag(result_id: str, overrides: Sequence[Override]) -> str:
    """Return the entity tag of the result with these overrides, oldest first."""
    return f'"{".".join([result_id, *(each.id for each in overrides[-1:])])}"'


async def _with_overrides(body: str, overrides: Sequence[Override]) -> str:
    """Append the overrides to the JSON of a stored result. Takes a few milliseconds per megabyte, in a thread."""
    if not overrides:
        return body
    added = await asyncio.to_thread(lambda: override_fields(json.loads(body), overrides))
    return f"{body.rstrip().removesuffix('}')},{json.dumps(added)[1:]}"


@router.get("/agents/{agent}/history")
async def list_agent_history(
    agent: NamePath, service: ServiceDep, caller: ReaderDep, paging: ResultsPageDep
) -> ListOut[ResultOrigin]:
    """List the results of an agent without their trees, newest first."""
    async with service.database.begin() as connection:
        origins = await rows.list_origins(
            connection,
            limit=paging.limit + 1,
            chosen=ListFilter(owner=caller.visible_owner, agent=agent),
            before=paging.cursor,
        )
    page, next_cursor = paging.split(origins, lambda origin: origin.result_id)
    return ListOut(items=list(page), next_cursor=next_cursor)


@router.get("/results/{result_id}/origin")
async def get_result_origin(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ResultOrigin:
    """Return the job and submission of a result."""
    async with service.database.begin() as connection:
        stored = await rows.origin_of(connection, result_id, owner=caller.visible_owner)
    if stored is None:
        raise not_found("result")
    return stored


@router.get("/results/{result_id}/answer", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
async def get_result_answer(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> Response:
    """Return the judged answer unchanged, byte for byte."""
    async with service.database.begin() as connection:
        text = await rows.judged_text(connection, result_id, owner=caller.visible_owner)
    if text is None:
        raise not_found("result")
    return Response(text, media_type=_MARKDOWN)


@router.get("/schema/result.json", response_model=JsonSchemaOut)
async def get_result_schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return result_schema()


@cache
def result_schema() -> dict[str, Any]:
    """Return the schema. Do not modify the returned value; it is cached."""
    schema: dict[str, Any] = json.loads(resources.files("app.api").joinpath("result_schema.json").read_text("utf-8"))
    return schema
