"""What a judge said about one claim, and what it was shown.

Values only. A verdict never stands for a fault: when nobody found out, the outcome is
``not_judged`` and the reason says which part of the machinery stayed silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of one leaf."""

    PASSED = "passed"
    """The judge spoke: the claim holds."""
    FAILED = "failed"
    """The judge spoke: the claim does not hold."""
    SKIPPED = "skipped"
    """Not looked at, because an earlier leaf gated it."""
    NOT_JUDGED = "not_judged"
    """We did not find out. Never counts as a failure in our own score."""
    UNDECIDED = "undecided"
    """The judge script never settled this leaf. Counts 0."""


class Reason(StrEnum):
    """Why a leaf has its outcome. Grouped by the outcome it belongs to."""

    # failed: the judge spoke
    REFUTED = "refuted"
    """The evidence was read and does not support the claim."""
    NO_SOURCE = "no_source"
    """The claim needs a source and the answer gives none."""
    SOURCE_GONE = "source_gone"
    """The cited page is known not to exist: 404, 410 or no such host."""
    CHECK_FALSE = "check_false"
    """A check made by code came out false."""

    # skipped
    GATED = "gated"
    """A critical sibling, an earlier step or a named prerequisite did not pass."""

    # not_judged: we did not find out
    LLM_UNAVAILABLE = "llm_unavailable"
    LLM_REJECTED = "llm_rejected"
    """The provider refused the request for good: wrong key, no access, bad request."""
    LLM_OUTPUT_UNUSABLE = "llm_output_unusable"
    """Truncated, refused, filtered, empty, malformed or off-schema, also after one repair try."""
    NO_MAJORITY = "no_majority"
    """So many votes were lost that no majority is certain."""
    CAPTURE_FAILED = "capture_failed"
    CAPTURE_BLOCKED = "capture_blocked"
    """A block page, captcha, login wall or consent wall stood before the page."""
    EGRESS_DENIED = "egress_denied"
    EVIDENCE_CORRUPT = "evidence_corrupt"
    """A stored blob no longer has the hash it was stored under."""
    TIMEOUT = "timeout"
    BUDGET = "budget"
    EXTRACTION_FAILED = "extraction_failed"
    """The values this leaf was built from could not be read out of the answer or page."""


NOT_JUDGED_REASONS = frozenset(
    {
        Reason.LLM_UNAVAILABLE,
        Reason.LLM_REJECTED,
        Reason.LLM_OUTPUT_UNUSABLE,
        Reason.NO_MAJORITY,
        Reason.CAPTURE_FAILED,
        Reason.CAPTURE_BLOCKED,
        Reason.EGRESS_DENIED,
        Reason.EVIDENCE_CORRUPT,
        Reason.TIMEOUT,
        Reason.BUDGET,
        Reason.EXTRACTION_FAILED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One checkable sentence and where it should be found.

    ``sources`` is None when the claim is about the answer itself, and a tuple of 0..n URLs when it
    must be backed by a page; an empty tuple is a claim whose answer named no source.
    """

    text: str
    sources: tuple[str, ...] | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One reply of one judge; ``result`` is None when that vote was lost to a fault.

    ``request`` is the key of the request, empty if it has none.
    """

    result: bool | None
    model: str
    cached: bool = False
    fault: Reason | None = None
    request: str = ""


class Origin(StrEnum):
    """Where on a page a quote stands."""

    TEXT = "text"
    """In its text, where code found it."""
    IMAGE = "image"
    """In a picture of it, as a model copied it out: code could only check that it bears on the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A verbatim passage of a page: ``text[start:end]`` of its text in characters, both 0 for a picture."""

    text: str
    page_id: str
    start: int
    end: int
    origin: Origin = Origin.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What model calls cost. ``usd`` is None when a model in it has no known price."""

    calls: int = 0
    cached_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            cached_calls=self.cached_calls + other.cached_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model request behind a verdict. Requests with the same key are equal; an empty key equals no other."""

    key: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of one leaf, with everything needed to dispute it.

    ``evidence`` holds the SHA-256 digests (hex) of what the judge was shown, ``quotes`` the passages
    that were found by code, ``blocked_by`` the id of the leaf or node that gated a skipped one.
    """

    outcome: Outcome
    reason: Reason | None = None
    reasoning: str = ""
    votes: tuple[Vote, ...] = ()
    quotes: tuple[Quote, ...] = ()
    evidence: tuple[str, ...] = ()
    prompt: str | None = None
    """``id@version`` of the prompt that was sent; None when no model was asked."""
    model: str | None = None
    usage: Usage = Usage()
    requests: tuple[ModelRequest, ...] = ()
    """What ``usage`` is the sum of; empty if the requests are not known one by one."""
    unneeded: tuple[ModelRequest, ...] = ()
    """Finished requests about other sources of a claim that one source alone decided. Their cost is in the usage of the
    answer and in no leaf's, because how many finish before the others are cancelled depends on timing."""
    blocked_by: str | None = None
    grounded: bool | None = None
    """True: a quote stands in the page, or code itself decided. False: a judge said so without one, or what it
    read gives reason to doubt it. None: grounding does not apply (claims about the answer alone, anything but
    passed)."""
    signals: tuple[str, ...] = ()
    """What code noticed in the answer, the page or its address that a reader should know, sorted."""

    @property
    def spent(self) -> Usage:
        """``usage`` and what the unneeded requests cost."""
        return sum((request.usage for request in self.unneeded), self.usage)

    @property
    def grounding(self) -> Origin | None:
        """What the quotes were found in, pictures if any was; None without quotes."""
        origins = {quote.origin for quote in self.quotes}
        return Origin.IMAGE if Origin.IMAGE in origins else next(iter(origins), None)
