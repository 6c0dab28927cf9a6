"""Export of overrides as labels for ``assay meta-eval``. Results are read in batches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from app.api.access import ReaderDep, ServiceDep
from app.api.paging import NameFilter
from app.service import Service
from app.storage import overrides as rows
from app.storage.overrides import Override, ReviewedResult
from judges.analysis.labels import HumanDecision, label_from_leaf, label_line
from judges.analysis.overrides import judged_leaves

router = APIRouter(prefix="/v1", tags=["reviews"])

MEDIA_TYPE = "application/x-ndjson"
_BATCH = 20


@router.get("/reviews/export", response_class=StreamingResponse, responses={200: {"content": {MEDIA_TYPE: {}}}})
async def export(
    service: ServiceDep, caller: ReaderDep, agent: NameFilter = None, task_id: NameFilter = None
) -> StreamingResponse:
    """Export the newest override of each person on each leaf as JSON Lines. docs/meta-eval.md describes the format."""
    labels = _labels(service, owner=caller.visible_owner, agent=agent, task_id=task_id)
    headers = {"Content-Disposition": 'attachment; filename="labels.jsonl"'}
    return StreamingResponse(labels, media_type=MEDIA_TYPE, headers=headers)


async def _labels(
    service: Service, *, owner: str | None, agent: str | None, task_id: str | None
) -> AsyncIterator[bytes]:
    after = ""
    while True:
        async with service.database.begin() as connection:
            found = await rows.list_reviewed(
                connection, limit=_BATCH, owner=owner, after=after, agent=agent, task_id=task_id
            )
            overrides = await rows.overrides_of(connection, [one.id for one in found])
        for one in found:
            yield await asyncio.to_thread(_lines, one, overrides.get(one.id, ()))
        if len(found) < _BATCH:
            return
        after = found[-1].id


def _lines(reviewed: ReviewedResult, overrides: Sequence[Override]) -> bytes:
    result = json.loads(reviewed.body)
    leaves = judged_leaves(result)
    lines = [
        label_line(
            label_from_leaf(
                result,
                leaves[row.leaf].data,
                key=row.leaf,
                human=HumanDecision(str(row.outcome)),
                reviewer=row.by,
                reason=row.reason,
                at=row.created_at,
                answer=reviewed.answer,
            )
        )
        for row in rows.by_person(overrides)
    ]
    return "".join(lines).encode()
