"""Verdicts: the decision on one leaf, with the evidence behind it.

Values only. A fault is never a verdict: if a fault prevents judging, the outcome is ``not_judged`` and the reason names
the part that failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a leaf ended."""

    PASSED = "passed"
    """The leaf was judged: the claim is supported, or the check is true."""
    FAILED = "failed"
    """The leaf was judged: the claim is not supported, or the check is false."""
    SKIPPED = "skipped"
    """A gate prevented judging."""
    NOT_JUDGED = "not_judged"
    """A fault prevented judging. It widens the bounds of the score and never counts as a failed claim."""
    UNDECIDED = "undecided"
    """The task script never settled the leaf. It counts 0."""


class Reason(StrEnum):
    """Why a leaf has its outcome, grouped by outcome."""

    # failed
    REFUTED = "refuted"
    """The evidence was read and does not support the claim."""
    NO_SOURCE = "no_source"
    """The claim needs a source and the answer cites none."""
    SOURCE_GONE = "source_gone"
    """The cited page does not exist: HTTP 404, HTTP 410 or unknown host."""
    SOURCE_FORBIDDEN = "source_forbidden"
    """The claim rests only on sources that the task or the service does not accept."""
    NO_VALUE = "no_value"
    """The claim names a value that the answer does not give."""
    CHECK_FALSE = "check_false"
    """A check by code is false."""

    # skipped
    GATED = "gated"
    """A critical sibling, an earlier step or a named prerequisite did not pass."""

    # not_judged
    LLM_UNAVAILABLE = "llm_unavailable"
    """The model was unreachable, overloaded (429) or failing (HTTP 5xx), even after retries."""
    LLM_REJECTED = "llm_rejected"
    """The provider permanently rejected the request: invalid key, no access, bad request."""
    LLM_OUTPUT_UNUSABLE = "llm_output_unusable"
    """The reply was truncated, refused, filtered, empty, malformed or against the schema, even after one retry."""
    NO_MAJORITY = "no_majority"
    """So many votes failed that no majority is certain."""
    CAPTURE_FAILED = "capture_failed"
    PAGE_NOT_STORED = "page_not_stored"
    """The page is not stored, and the run captures no pages (a rescore)."""
    CAPTURE_BLOCKED = "capture_blocked"
    """A block page, captcha, login wall or consent dialog appeared instead of the page."""
    EGRESS_DENIED = "egress_denied"
    EVIDENCE_CORRUPT = "evidence_corrupt"
    """A stored body no longer matches its hash."""
    PAGE_NOT_FULLY_SEEN = "page_not_fully_seen"
    """The judge did not see all of the page, and the part that it saw does not support the claim with a found quote."""
    TIMEOUT = "timeout"
    BUDGET = "budget"
    EXTRACTION_FAILED = "extraction_failed"
    """The values for this leaf could not be extracted from the answer or page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One checkable sentence and the URLs that should support it.

    ``sources`` is None if the claim is about the answer itself. It is empty if a page must support the claim but the
    answer cites none. With ``lacks_value``, the text names a value that the answer does not give, and the claim fails
    without a model request.
    """

    text: str
    sources: tuple[str, ...] | None = None
    instruction: str | None = None
    lacks_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One reply of a model to a claim. ``result`` is None if a fault prevented the vote.

    ``request`` is the key of the request, empty if it has none.
    """

    result: bool | None
    model: str
    cached: bool = False
    fault: Reason | None = None
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberVerdict:
    """Verdict of one member of a jury on a claim."""

    model: str
    outcome: Outcome
    reason: Reason | None = None
    reasoning: str = ""


class CheckNote(StrEnum):
    """Why a source did not get the judgement of a model."""

    NO_PAGE = "no page"
    """There is no page to show: it could not be captured, is not evidence, or the source is not an address."""
    TOO_LONG = "too long"
    """The page does not fit into a request, even shortened."""
    ERROR = "error"
    """A vote failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheck:
    """Judgement of a claim on one source, or on the answer alone if ``url`` is None.

    ``votes`` are the model's replies; a vote that was lost counts as false. ``reasoning`` is that of a vote with the
    result, None if there is no result.
    """

    url: str | None
    passed: bool
    votes: tuple[bool, ...] = ()
    reasoning: str | None = None
    note: CheckNote | None = None


class QuoteOrigin(StrEnum):
    """Part of a page that a quote comes from."""

    TEXT = "text"
    """The text of the page. Code found the quote there."""
    IMAGE = "image"
    """A screenshot that a model transcribed. Code could only check that the quote is relevant to the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Verbatim passage of a page: ``[start:end]`` of its text in characters, or 0 and 0 for a screenshot."""

    text: str
    page_id: str
    start: int
    end: int
    origin: QuoteOrigin = QuoteOrigin.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls, tokens and cost of model requests. ``usd`` is None if the price of a model is unknown."""

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
    """Decision on one leaf, with everything needed to check it.

    ``evidence`` contains the SHA-256 digests (hex) of the evidence that the model received, ``quotes`` the passages
    that code found, ``blocked_by`` the id of the node that gated a skipped leaf.
    """

    outcome: Outcome
    reason: Reason | None = None
    reasoning: str = ""
    votes: tuple[Vote, ...] = ()
    quotes: tuple[Quote, ...] = ()
    evidence: tuple[str, ...] = ()
    prompt: str | None = None
    """``id@version`` of the prompt; None if no model was called."""
    model: str | None = None
    usage: Usage = Usage()
    requests: tuple[ModelRequest, ...] = ()
    """The requests that ``usage`` is the sum of; empty if they are not known individually."""
    unneeded: tuple[ModelRequest, ...] = ()
    """Completed requests for other sources of a claim that one source decided. Their cost counts for the answer and not
    for the leaf, because their number depends on timing."""
    blocked_by: str | None = None
    grounded: bool | None = None
    """True: a quote was found in the page, or code decided the leaf. False: there is no valid quote, or a
    signal casts doubt on the evidence. None: grounding does not apply (claims about the answer alone, every
    outcome except passed)."""
    checks: tuple[SourceCheck, ...] = ()
    """The judgement of each source, in the order in which they are cited. Sources whose requests were cancelled because
    another source decided are left out."""
    members: tuple[MemberVerdict, ...] = ()
    """Verdicts of the members if a jury decided, in their order."""
    signals: tuple[str, ...] = ()
    """Warnings that code attached about the answer, the page or its URL, sorted."""
    penalized: bool = False
    """The leaf counts -1 instead of 0, because the answer cites forbidden sources for it."""
    supplied: bool = False
    """The verdict rests on a page that the agent supplied, which does not count in the strict score."""

    @property
    def spent(self) -> Usage:
        """Return ``usage`` plus the usage of the unneeded requests."""
        return sum((request.usage for request in self.unneeded), self.usage)

    @property
    def grounding(self) -> QuoteOrigin | None:
        """Origin of the quotes: ``image`` if any comes from a screenshot; None without quotes."""
        origins = {quote.origin for quote in self.quotes}
        return QuoteOrigin.IMAGE if QuoteOrigin.IMAGE in origins else next(iter(origins), None)
