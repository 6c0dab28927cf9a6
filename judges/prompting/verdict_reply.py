"""Reply format of a verdict."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from judges.errors import UnusableKind
from judges.grounding.claim_words import covers_all, locate_words
from rubrics.verdict import Support

WRONG_WORDS: Final = UnusableKind.WRONG_WORDS.value


class BinaryEvalResult(BaseModel):
    """One vote.

    The public toolkit's class of this name has only the first two fields, and replacements of its client return only
    those. ``quotes`` is therefore optional.
    """

    reasoning: str
    result: bool
    quotes: list[str] = Field(default_factory=list)


class PartialEvalResult(BaseModel):
    """One vote on a claim that is judged for partial support.

    The validation context is the mapping of the request's texts. If it contains ``claim``, the words of
    ``unsupported`` must occur in it.
    """

    reasoning: str
    verdict: Literal["supported", "partly_supported", "not_supported"]
    unsupported: list[str] = Field(default_factory=list)
    quotes: list[str] = Field(default_factory=list)

    @property
    def result(self) -> bool:
        """Whether the vote counts as supported."""
        return self.verdict == "supported"

    @property
    def support(self) -> Support:
        return Support(self.verdict)

    def fits(self, claim: str) -> bool:
        """Return whether the words that a partly supported claim marks are words of it."""
        return self.support is not Support.PARTLY_SUPPORTED or bool(locate_words(claim, self.unsupported))

    @model_validator(mode="after")
    def _check_words(self, info: ValidationInfo) -> Self:
        """Refuse words that contradict the verdict or do not occur in the claim.

        The words of a claim that is not supported do not matter, because all of them are unsupported.
        """
        if self.support is Support.NOT_SUPPORTED:
            return self
        if bool(self.unsupported) is self.result:
            raise PydanticCustomError(WRONG_WORDS, "the marked words contradict the verdict")
        claim = (info.context or {}).get("claim")
        if claim is None or self.result:
            return self
        if not self.fits(claim):
            raise PydanticCustomError(WRONG_WORDS, "a marked passage is not in the claim")
        if covers_all(claim, locate_words(claim, self.unsupported) or ()):
            self.verdict = "not_supported"
        return self


def verdict_values(schema: object, *, holds: bool, reasoning: str) -> dict[str, Any]:
    """Return the values of a vote without quotes for the class ``schema``."""
    if schema is PartialEvalResult:
        return {"verdict": "supported" if holds else "not_supported", "reasoning": reasoning}
    return {"result": holds, "reasoning": reasoning}
