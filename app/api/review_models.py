"""Request and response models of overrides and agreement."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.api.request_fields import NOT_BLANK
from judges.analysis.statistics.agreement import Agreement, Estimate

_RESULT = "res_01m7zskz6revg7seq0pskhvm69"
_OVERRIDE = "ovr_01m7zskz6revg7seq0pskhvm69"
_FIGURE: dict[str, Any] = {"value": 0.8, "low": 0.49, "high": 0.94, "n": 10, "method": "Wilson (1927)", "reason": None}


_OVERRIDE_EXAMPLE: dict[str, Any] = {
    "id": _OVERRIDE,
    "result_id": _RESULT,
    "leaf": "lineage/g2/source",
    "outcome": "passed",
    "verdict": "failed",
    "model": "gpt-6-luna",
    "reason": "The page names him in its second paragraph, in German.",
    "by": "Ada",
    "key_owner": "local",
    "withdraws": None,
    "in_force": True,
    "created_at": "2026-03-01T09:30:00Z",
}
_REVIEW_EXAMPLE: dict[str, Any] = {
    **_OVERRIDE_EXAMPLE,
    "agent": "my-agent",
    "task_id": "yu_lineage",
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
                "leaf": "lineage/g2/source",
                "outcome": "passed",
                "reason": "The page names him in its second paragraph, in German.",
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
    """An override, or the withdrawal of one: then ``outcome`` is null and ``withdraws`` is the id of the override.

    ``verdict`` is the outcome by the judge, ``model`` its model (null: decided by code). ``in_force``: it is the newest
    override of its leaf that was not withdrawn.
    """

    model_config = ConfigDict(json_schema_extra={"example": _OVERRIDE_EXAMPLE})

    id: str
    result_id: str
    leaf: str
    outcome: Literal["passed", "failed"] | None
    verdict: str
    model: str | None
    reason: str
    by: str
    key_owner: str
    withdraws: str | None
    in_force: bool
    created_at: datetime


class ReviewOut(OverrideOut):
    """An override with the answer that it refers to."""

    model_config = ConfigDict(json_schema_extra={"example": _REVIEW_EXAMPLE})

    agent: str
    task_id: str
    answer_name: str


class FigureOut(BaseModel):
    """A figure with its 95 % interval. If a value is missing, ``reason`` contains the cause."""

    model_config = ConfigDict(json_schema_extra={"example": _FIGURE})

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None

    @classmethod
    def of(cls, estimate: Estimate) -> FigureOut:
        return cls(**{name: getattr(estimate, name) for name in cls.model_fields})


class AgreementFiguresOut(BaseModel):
    """Agreement of the judge and people on overridden leaves. Positive is "passed".

    ``left_out`` counts overridden leaves without a verdict of the judge: not judged, skipped or undecided.
    """

    leaves: int
    left_out: int
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    raw: FigureOut
    kappa: FigureOut
    ac1: FigureOut
    tpr: FigureOut
    tnr: FigureOut

    @staticmethod
    def fields(found: Agreement, *, left_out: int) -> dict[str, Any]:
        counts = found.confusion
        figures = {name: FigureOut.of(getattr(found, name)) for name in ("raw", "kappa", "ac1", "tpr", "tnr")}
        return {
            "leaves": counts.n,
            "left_out": left_out,
            "true_positive": counts.true_positive,
            "false_positive": counts.false_positive,
            "false_negative": counts.false_negative,
            "true_negative": counts.true_negative,
            **figures,
        }


class AgreementGroupOut(AgreementFiguresOut):
    """Agreement for one task and one model; ``model`` is null for checks by code."""

    task_id: str
    model: str | None


class AgreementOut(BaseModel):
    """Agreement over all overridden leaves, and by task and model."""

    whole: AgreementFiguresOut
    items: list[AgreementGroupOut]
