"""Reply format of a verdict."""

from __future__ import annotations

from pydantic import BaseModel, Field


class BinaryEvalResult(BaseModel):
    """One vote.

    The public toolkit's class of this name has only the first two fields, and replacements of its client return only
    those. ``quotes`` is therefore optional.
    """

    reasoning: str
    result: bool
    quotes: list[str] = Field(default_factory=list)
