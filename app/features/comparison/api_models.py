"""The shapes of what flipped between two sides, and why."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app.features.comparison.flips import Cause, Flip


class FlipCauseOut(BaseModel):
    """One thing that was not the same on both sides."""

    cause: Cause
    detail: str


class FlipOut(BaseModel):
    """One leaf that came out otherwise. An outcome is null where that side's tree has no such leaf."""

    task_id: str
    answer_name: str
    leaf: str
    description: str = Field(description="Its first 500 characters")
    before: str | None
    after: str | None
    causes: list[FlipCauseOut]
    result_before: str
    result_after: str

    @classmethod
    def of(cls, flip: Flip) -> FlipOut:
        return cls.model_validate(flip.json())
