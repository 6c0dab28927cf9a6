"""Response models for flipped leaves."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app.features.comparison.flips import Cause, Flip


class FlipCauseOut(BaseModel):
    """Cause of a flip: something that differs between the two sides."""

    cause: Cause
    detail: str


class FlipOut(BaseModel):
    """Leaf whose outcome differs. An outcome is null if the tree of that side has no such leaf."""

    task_id: str
    answer_name: str
    leaf: str
    description: str = Field(description="First 500 characters of the description")
    before: str | None
    after: str | None
    causes: list[FlipCauseOut]
    result_before: str
    result_after: str

    @classmethod
    def of(cls, flip: Flip) -> FlipOut:
        return cls.model_validate(flip.json())
