"""Routes for overrides: add, list, withdraw and export them, and compare them with the verdicts of the judge.

Rows are added and never changed. The verdicts and scores of a result do not change; the scores with overrides are
reported next to them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Path, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.examples import EXAMPLE_ID, EXAMPLE_TIME, references, sends
from app.api.models import ListOut
from app.api.paging import ID_PATTERN, IdPath, ModelFilter, NameFilter, PageRequest, pages_by_id
from app.api.problems import Problem, not_found
from app.api.request_fields import NOT_BLANK, StrictJsonRoute
from app.service import Service
from app.storage import overrides as rows
from app.storage.overrides import Override, Review, ReviewedResult
from app.storage.records import storable_text
from app.storage.results import has_result
from judges.analysis.labels import HumanDecision, label_from_leaf, label_line
from judges.analysis.overrides import (
    JudgedNode,
    OverrideLike,
    judged_leaves,
    judged_tree,
    override_scores,
    overrides_in_force,
)
from judges.analysis.statistics.agreement import agreement as agreement_of
from judges.analysis.statistics.agreement import confusion_of
from judges.result import score_json
from rubrics.tree_json import may_lack_parts


def override_fields(result: Mapping[str, Any], rows: Sequence[Override]) -> dict[str, Any]:
    """Return the fields ``overrides`` (oldest first) and ``with_overrides`` of a result."""
    return {"overrides": overrides_json(rows), "with_overrides": scores_with_overrides(result, rows)}


def override_json(row: Override, *, is_in_force: bool) -> dict[str, Any]:
    """Return one override as results and lists show it. ``is_in_force``: the newest on its leaf, and not withdrawn."""
    fields = dataclasses.asdict(row)
    created_at = fields.pop("created_at").astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {**fields, "in_force": is_in_force, "created_at": created_at}


def overrides_json(rows: Sequence[Override]) -> list[dict[str, Any]]:
    """Return all overrides of one result, oldest first."""
    ids = {row.id for row in overrides_in_force(rows).values()}
    return [override_json(row, is_in_force=row.id in ids) for row in rows]


def scores_with_overrides(result: Mapping[str, Any], overrides: Sequence[OverrideLike]) -> dict[str, Any] | None:
    """Return the scores with the overrides in force instead of the verdicts; None if no override is in force.

    Raises:
        InvalidNode: A weight in the tree is 0 or not finite.
    """
    root, effective = judged_tree(result), overrides_in_force(overrides)
    if root is None or not effective:
        return None
    passed = {leaf: override.outcome == "passed" for leaf, override in effective.items()}
    scores = override_scores(root, passed, is_whole=not may_lack_parts(result))
    return {
        "score": score_json(scores.score),
        "score_strict": score_json(scores.score_strict),
        "final_score": scores.final_score,
        **({} if scores.score_unclipped is None else {"score_unclipped": score_json(scores.score_unclipped)}),
        "leaves": len(effective),
    }


_FIGURE: dict[str, Any] = {"value": 0.8, "low": 0.49, "high": 0.94, "n": 10, "method": "Wilson (1927)", "reason": None}


_OVERRIDE_EXAMPLE: dict[str, Any] = {
    "id": f"ovr_{EXAMPLE_ID}",
    "result_id": f"res_{EXAMPLE_ID}",
    "leaf": "ferry/leaves",
    "outcome": "passed",
    "verdict": "failed",
    "model": "gpt-6-luna",
    "reason": "The page gives the time in its second table.",
    "by": "Ada",
    "key_owner": "local",
    "withdraws": None,
    "in_force": True,
    "created_at": EXAMPLE_TIME,
}
_REVIEW_EXAMPLE: dict[str, Any] = {
    **_OVERRIDE_EXAMPLE,
    "agent": "my-agent",
    "task_id": "karrow_visit",
    "answer_name": "answer_1.md",
}


def _stripped(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain NUL")
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


_NOT_BLANK: dict[str, Any] = {"pattern": NOT_BLANK, "minLength": 1}
ReasonText: TypeAlias = Annotated[str, Field(max_length=4000, json_schema_extra=_NOT_BLANK), AfterValidator(_stripped)]
PersonName: TypeAlias = Annotated[str, Field(max_length=100, json_schema_extra=_NOT_BLANK), AfterValidator(_stripped)]


class OverrideIn(BaseModel):
    """A person's decision on one leaf, which confirms or contradicts the verdict."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "leaf": "ferry/leaves",
                "outcome": "passed",
                "reason": "The page gives the time in its second table.",
                "by": "Ada",
            }
        },
    )

    leaf: Annotated[str, Field(max_length=2000)] = Field(
        description="Id of the leaf in the result; the second leaf with the same id is id~2"
    )
    outcome: Literal["passed", "failed"]
    reason: ReasonText
    by: PersonName = Field(description="Name of the person")


class WithdrawalIn(BaseModel):
    """Reason for withdrawing an override."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"reason": "I misread the date.", "by": "Ada"}}
    )

    reason: ReasonText
    by: PersonName


class OverrideOut(BaseModel):
    """An override, or the withdrawal of one."""

    model_config = ConfigDict(json_schema_extra={"example": _OVERRIDE_EXAMPLE})

    id: str
    result_id: str
    leaf: str
    outcome: Literal["passed", "failed"] | None = Field(description="Outcome by the person; null for a withdrawal")
    verdict: str = Field(description="Outcome by the judge")
    model: str | None = Field(description="Model of the verdict; null if code decided it")
    reason: str
    by: str
    key_owner: str
    withdraws: str | None = Field(description="ID of the withdrawn override; null for an override")
    in_force: bool = Field(description="It is the newest override of its leaf and not withdrawn")
    created_at: datetime


class ReviewOut(OverrideOut):
    """An override with the answer that it refers to."""

    model_config = ConfigDict(json_schema_extra={"example": _REVIEW_EXAMPLE})

    agent: str
    task_id: str
    answer_name: str


class FigureOut(BaseModel):
    """A figure with its 95 % interval."""

    model_config = ConfigDict(json_schema_extra={"example": _FIGURE})

    value: float | None
    low: float | None
    high: float | None
    n: int = Field(description="Number of leaves behind the figure")
    method: str = Field(description="Method of the interval")
    reason: str | None = Field(description="Why the value is missing")


class AgreementFiguresOut(BaseModel):
    """Agreement of the judge and people on overridden leaves. Positive is "passed"."""

    leaves: int
    left_out: int = Field(description="Overridden leaves that the judge did not judge, skipped or left undecided")
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    raw: FigureOut = Field(description="Share of leaves on which both agree")
    kappa: FigureOut = Field(description="Cohen's kappa")
    ac1: FigureOut = Field(description="Gwet's AC1")
    tpr: FigureOut = Field(description="True positive rate of the judge")
    tnr: FigureOut = Field(description="True negative rate of the judge")


class AgreementGroupOut(AgreementFiguresOut):
    """Agreement for one task and one model; ``model`` is null for checks by code."""

    task_id: str
    model: str | None


class AgreementOut(BaseModel):
    """Agreement over all overridden leaves, and by task and model."""

    whole: AgreementFiguresOut
    items: list[AgreementGroupOut]


router = APIRouter(prefix="/v1", tags=["reviews"], route_class=StrictJsonRoute)

MAX_OVERRIDES_PER_RESULT = 5000
MAX_OVERRIDES_COUNTED = 100_000
"""Agreement is computed over at most this many of the newest overrides."""
_LISTED_LEAVES = 5
_LABELS_MEDIA_TYPE = "application/x-ndjson"
_EXPORT_BATCH = 20
"""Number of results read at once for the export."""
_MODEL_CHARS = 200

OverridePath = Annotated[str, Path(pattern=ID_PATTERN)]


@router.post("/results/{result_id}/overrides", status_code=201, responses=sends(201, "Location"))
async def create_override(
    result_id: IdPath, body: OverrideIn, response: Response, service: ServiceDep, caller: SubmitterDep
) -> OverrideOut:
    """Override a leaf of a result with an outcome, a reason and your name. The verdict and the scores do not change."""
    async with service.database.begin() as connection:
        text = await rows.lock_result(connection, result_id, owner=caller.visible_owner)
        if text is None:
            raise not_found("result")
        leaf = await asyncio.to_thread(_leaf, text, body.leaf)
        existing = (await rows.overrides_of(connection, [result_id])).get(result_id, ())
        if len(existing) >= MAX_OVERRIDES_PER_RESULT:
            raise Problem(
                409, "CONFLICT", f"This result has {MAX_OVERRIDES_PER_RESULT} overrides and withdrawals, the maximum"
            )
        row = Override(
            id=service.runtime.ids.new("ovr"),
            result_id=result_id,
            verdict=leaf.outcome.value,
            model=_model(leaf),
            key_owner=caller.owner,
            withdraws=None,
            created_at=service.runtime.clock.now(),
            **body.model_dump(),
        )
        await rows.insert_override(connection, row)
    response.headers["Location"] = f"/v1/results/{result_id}/overrides"
    return OverrideOut.model_validate(override_json(row, is_in_force=True))


@router.get("/results/{result_id}/overrides")
async def list_overrides(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ListOut[OverrideOut]:
    """List the overrides of a result, oldest first."""
    async with service.database.begin() as connection:
        if not await has_result(connection, result_id, owner=caller.visible_owner):
            raise not_found("result")
        existing = (await rows.overrides_of(connection, [result_id])).get(result_id, ())
    return ListOut(items=[OverrideOut.model_validate(one) for one in overrides_json(existing)])


@router.post("/results/{result_id}/overrides/{override_id}/withdraw", status_code=201)
async def withdraw_override(
    result_id: IdPath, override_id: OverridePath, body: WithdrawalIn, service: ServiceDep, caller: SubmitterDep
) -> OverrideOut:
    """Withdraw an override with a reason and your name. The previous override of the leaf is in force again."""
    async with service.database.begin() as connection:
        if await rows.lock_result(connection, result_id, owner=caller.visible_owner) is None:
            raise not_found("result")
        existing = (await rows.overrides_of(connection, [result_id])).get(result_id, ())
        withdrawn = next((row for row in existing if row.id == override_id and row.outcome is not None), None)
        if withdrawn is None:
            raise not_found("override of this result")
        if any(row.withdraws == override_id for row in existing):
            raise Problem(409, "CONFLICT", "This override was already withdrawn")
        row = replace(
            withdrawn,
            id=service.runtime.ids.new("ovr"),
            outcome=None,
            key_owner=caller.owner,
            withdraws=override_id,
            created_at=service.runtime.clock.now(),
            **body.model_dump(),
        )
        await rows.insert_override(connection, row)
    return OverrideOut.model_validate(override_json(row, is_in_force=False))


@router.get("/reviews")
async def list_reviews(
    service: ServiceDep,
    caller: ReaderDep,
    paging: Annotated[PageRequest, pages_by_id("ovr")],
    agent: NameFilter = None,
    task_id: NameFilter = None,
) -> ListOut[ReviewOut]:
    """List overrides, newest first."""
    async with service.database.begin() as connection:
        stored = await rows.list_reviews(
            connection,
            limit=paging.limit + 1,
            owner=caller.visible_owner,
            before=paging.cursor,
            agent=agent,
            task_id=task_id,
        )
        page, next_cursor = paging.split(stored, lambda review: review.id)
        existing = await rows.overrides_of(connection, {one.result_id for one in page})
    in_force = {row.id for every in existing.values() for row in overrides_in_force(every).values()}
    items = [ReviewOut.model_validate(override_json(one, is_in_force=one.id in in_force)) for one in page]
    return ListOut(items=items, next_cursor=next_cursor)


@router.get("/reviews/agreement")
async def get_agreement(
    service: ServiceDep,
    caller: ReaderDep,
    agent: NameFilter = None,
    task_id: NameFilter = None,
    model: ModelFilter = None,
) -> AgreementOut:
    """Return the agreement of the judge and people on overridden leaves, in total and by task and model."""
    async with service.database.begin() as connection:
        stored = await rows.list_reviews(
            connection, limit=MAX_OVERRIDES_COUNTED, owner=caller.visible_owner, agent=agent, task_id=task_id
        )
    return await asyncio.to_thread(_agreement, stored, model)


@router.get(
    "/reviews/export",
    response_class=StreamingResponse,
    responses={200: {"content": {_LABELS_MEDIA_TYPE: {}}, **references("Content-Disposition")}},
)
async def export_reviews(
    service: ServiceDep, caller: ReaderDep, agent: NameFilter = None, task_id: NameFilter = None
) -> StreamingResponse:
    """Export the newest override of each person on each leaf as JSON Lines. docs/meta-eval.md describes the format."""
    labels = _labels(service, owner=caller.visible_owner, agent=agent, task_id=task_id)
    headers = {"Content-Disposition": 'attachment; filename="labels.jsonl"'}
    return StreamingResponse(labels, media_type=_LABELS_MEDIA_TYPE, headers=headers)


def _agreement(reviews: Sequence[Review], model: str | None) -> AgreementOut:
    in_force_rows = [one for one in _in_force(reviews) if model is None or one.model == model]
    groups: dict[tuple[str, str], list[Override]] = defaultdict(list)
    for in_force_row in in_force_rows:
        groups[in_force_row.task_id, in_force_row.model or ""].append(in_force_row)
    return AgreementOut(
        whole=AgreementFiguresOut.model_validate(_figures(in_force_rows), from_attributes=True),
        items=[
            AgreementGroupOut.model_validate(
                {"task_id": task_id, "model": name or None, **_figures(members)}, from_attributes=True
            )
            for (task_id, name), members in sorted(groups.items())
        ],
    )


def _in_force(reviews: Sequence[Review]) -> list[Review]:
    """Select the overrides in force. ``reviews`` is sorted newest first."""
    by_result: dict[str, list[Override]] = defaultdict(list)
    for one in reversed(reviews):
        by_result[one.result_id].append(one)
    ids = {row.id for every in by_result.values() for row in overrides_in_force(every).values()}
    return [one for one in reviews if one.id in ids]


def _figures(members: Sequence[Override]) -> dict[str, Any]:
    judged = [(row.verdict == "passed", row.outcome == "passed") for row in members if row.verdict in _VERDICTS]
    agreement = agreement_of(confusion_of(judged))
    figures = {name: getattr(agreement, name) for name in ("raw", "kappa", "ac1", "tpr", "tnr")}
    counts = {"leaves": len(judged), "left_out": len(members) - len(judged), **dataclasses.asdict(agreement.confusion)}
    return counts | figures


_VERDICTS = frozenset({"passed", "failed"})


def _leaf(body: str, key: str) -> JudgedNode:
    leaves: Mapping[str, JudgedNode] = judged_leaves(json.loads(body))
    if key in leaves:
        return leaves[key]
    listed = ", ".join(list(leaves)[:_LISTED_LEAVES])
    unlisted_note = f" and {len(leaves) - _LISTED_LEAVES} more" if len(leaves) > _LISTED_LEAVES else ""
    message = (
        f"is not a leaf of this result; its leaves are {listed}{unlisted_note}" if leaves else "this result has no tree"
    )
    raise Problem(404, "UNKNOWN_LEAF", "Unknown leaf", errors=[("leaf", message)])


def _model(leaf: JudgedNode) -> str | None:
    """Return the model of the verdict, cut to the column size because task files can write any text there."""
    model = leaf.data.get("model")
    return None if model is None else storable_text(str(model))[:_MODEL_CHARS]


async def _labels(
    service: Service, *, owner: str | None, agent: str | None, task_id: str | None
) -> AsyncIterator[bytes]:
    after = ""
    while True:
        async with service.database.begin() as connection:
            reviewed = await rows.list_reviewed(
                connection, limit=_EXPORT_BATCH, owner=owner, after=after, agent=agent, task_id=task_id
            )
            overrides = await rows.overrides_of(connection, [one.id for one in reviewed])
        for one in reviewed:
            yield await asyncio.to_thread(_label_lines, one, overrides.get(one.id, ()))
        if len(reviewed) < _EXPORT_BATCH:
            return
        after = reviewed[-1].id


def _label_lines(reviewed: ReviewedResult, overrides: Sequence[Override]) -> bytes:
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
