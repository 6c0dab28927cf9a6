"""Results and what they add up to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from app.api.access import OwnerDep, ServiceDep
from app.api.paging import IdPath, NameFilter, NamePath, SliceDep
from app.api.problems import not_found
from app.api.result_schema import result_schema
from app.storage import results as rows
from app.storage.records import JudgedAnswer
from app.summary import AnswerOutcome, agent_summary

router = APIRouter(prefix="/v1", tags=["results"])

_JSON = "application/json"
_LEADERBOARD_LEAVES_OUT = ("per_run", "tasks", "without_result")


@router.get("/results", responses={200: {"content": {_JSON: {}}}}, response_class=Response)
async def list_results(
    service: ServiceDep, _owner: OwnerDep, part: SliceDep, agent: NameFilter = None, task_id: NameFilter = None
) -> Response:
    """Results, newest first."""
    async with service.database.begin() as connection:
        found = await rows.list_results(
            connection, limit=part.limit + 1, before=part.cursor, agent=agent, task_id=task_id
        )
    page, following = part.cut(found, lambda result: result.id)
    # The stored texts are joined as they are: they were checked when they were written.
    items = ",".join(result.body for result in page)
    return Response(f'{{"items":[{items}],"next_cursor":{json.dumps(following)}}}', media_type=_JSON)


@router.get("/results/{result_id}", responses={200: {"content": {_JSON: {}}}}, response_class=Response)
async def result(
    result_id: IdPath,
    service: ServiceDep,
    _owner: OwnerDep,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """One result, byte for byte as it was stored. It never changes."""
    tag = f'"{result_id}"'
    async with service.database.begin() as connection:
        found = await rows.get_result(connection, result_id)
    if found is None:
        raise not_found("result")
    if if_none_match is not None and (if_none_match.strip() == "*" or tag in if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(found.body, media_type=_JSON, headers={"ETag": tag})


@router.get("/agents/{agent}/summary")
async def summary(agent: NamePath, service: ServiceDep, _owner: OwnerDep) -> dict[str, Any]:
    """The averages of an agent over its tasks and runs, and what is not known of them."""
    async with service.database.begin() as connection:
        judged = await rows.answers_of(connection, agent)
    if not judged:
        raise not_found("agent with judged answers")
    return _summary(agent, judged)


@router.get("/leaderboard")
async def leaderboard(service: ServiceDep, _owner: OwnerDep) -> dict[str, Any]:
    """Every agent's averages, the best first."""
    items = []
    async with service.database.begin() as connection:
        for agent in await rows.judged_agents(connection):
            whole = _summary(agent, await rows.answers_of(connection, agent))
            items.append({name: value for name, value in whole.items() if name not in _LEADERBOARD_LEAVES_OUT})
    items.sort(key=lambda item: (-(item["avg_score"] or 0.0), item["agent_name"]))
    return {"items": items, "next_cursor": None}


@router.get("/schema/result.json")
async def schema() -> dict[str, Any]:
    """The JSON Schema of a result."""
    return result_schema()


def _summary(agent: str, judged: Sequence[JudgedAnswer]) -> dict[str, Any]:
    outcomes = [
        AnswerOutcome(
            task_id=answer.task_id,
            answer_name=answer.answer_name,
            words=answer.words,
            result=None if answer.body is None else json.loads(answer.body),
            error_code=answer.error_code,
        )
        for answer in judged
    ]
    return dict(agent_summary(agent, outcomes))
