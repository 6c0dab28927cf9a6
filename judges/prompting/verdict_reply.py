"""What a judge model is asked to reply to a claim."""

from __future__ import annotations

from pydantic import BaseModel, Field


class BinaryEvalResult(BaseModel):
    """One vote. The public toolkit's class by this name has only the first two fields, and stand-ins for its
    clients reply with just those: ``quotes`` may always be left out.
    """

    reasoning: str
    result: bool
    quotes: list[str] = Field(default_factory=list)
