"""Verdicts for missing pages, and the combined verdict of several pages. Pure functions.

A page that is known to be gone fails the claim, because the answer cites a page that does not exist. So does a page
that does not count as a source. Any other missing page leaves the claim not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from cache.capture import CaptureOutcome
from cache.errors import BlobCorrupt, BlobMissing, CacheError, NoEvidence
from rubrics.scoring import counts_strictly
from rubrics.verdict import (
    CheckNote,
    ModelRequest,
    Outcome,
    Reason,
    SourceCheck,
    Usage,
    Verdict,
)

BLOCKED: Final = frozenset(
    {CaptureOutcome.BLOCKED, CaptureOutcome.CAPTCHA, CaptureOutcome.LOGIN_WALL, CaptureOutcome.CONSENT_WALL}
)
_REASONS: Final = MappingProxyType(
    {
        **dict.fromkeys(BLOCKED, Reason.CAPTURE_BLOCKED),
        CaptureOutcome.CORRUPT: Reason.EVIDENCE_CORRUPT,
        CaptureOutcome.EGRESS_DENIED: Reason.EGRESS_DENIED,
        CaptureOutcome.TIMEOUT: Reason.TIMEOUT,
        CaptureOutcome.NOT_STORED: Reason.PAGE_NOT_STORED,
    }
)


def no_source_verdict() -> Verdict:
    """Return the verdict of a claim that needs a source and has none."""
    return Verdict(
        outcome=Outcome.FAILED, reason=Reason.NO_SOURCE, reasoning="The answer cites no source for this claim."
    )


def verdict_without_evidence(error: CacheError) -> Verdict:
    """Return the verdict of a claim whose page is not available."""
    if isinstance(error, NoEvidence):
        if error.gone:
            return Verdict(outcome=Outcome.FAILED, reason=Reason.SOURCE_GONE, reasoning=str(error))
        if error.outcome is CaptureOutcome.FORBIDDEN:
            return Verdict(outcome=Outcome.FAILED, reason=Reason.SOURCE_FORBIDDEN, reasoning=error.detail)
        reason = _REASONS.get(error.outcome, Reason.CAPTURE_FAILED)
    elif isinstance(error, BlobCorrupt | BlobMissing):
        reason = Reason.EVIDENCE_CORRUPT
    else:
        reason = Reason.CAPTURE_FAILED
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=reason, reasoning=str(error))


def check_of(url: str | None, verdict: Verdict) -> SourceCheck:
    """Return the judgement on one source. ``url`` is None for the answer alone."""
    is_judged = bool(verdict.votes) and (
        verdict.outcome in (Outcome.PASSED, Outcome.FAILED) or verdict.reason is Reason.PAGE_NOT_FULLY_SEEN
    )
    return SourceCheck(
        url=url,
        passed=verdict.outcome is Outcome.PASSED,
        votes=tuple(vote.result is True for vote in verdict.votes),
        reasoning=verdict.reasoning if is_judged else None,
        note=_note(verdict),
    )


def combine_checks(checks: Sequence[Sequence[SourceCheck]], *, passed: bool) -> tuple[SourceCheck, ...]:
    """Combine the judgements of several judges on the same sources. Without ``passed``, no source supports the claim.

    The reasoning is that of the first judge with the result. A note is kept only if no judge gave a verdict.
    """
    by_url: dict[str | None, list[SourceCheck]] = {}
    for check in (check for each in checks for check in each):
        by_url.setdefault(check.url, []).append(check)
    return tuple(_combined_check(url, each, passed=passed) for url, each in by_url.items())


def _combined_check(url: str | None, checks: Sequence[SourceCheck], *, passed: bool) -> SourceCheck:
    is_passed = passed and any(check.passed for check in checks)
    judged = [check for check in checks if check.reasoning is not None]
    agreeing = next((check for check in judged if check.passed is is_passed), judged[0] if judged else None)
    return SourceCheck(
        url=url,
        passed=is_passed,
        votes=tuple(vote for check in checks for vote in check.votes),
        reasoning=None if agreeing is None else agreeing.reasoning,
        note=None if judged else next((check.note for check in checks if check.note is not None), None),
    )


def _note(verdict: Verdict) -> CheckNote | None:
    if not verdict.votes:
        # Without votes, only a request that stayed too long was rejected.
        is_too_long = verdict.reason in (Reason.LLM_REJECTED, Reason.PAGE_NOT_FULLY_SEEN)
        return CheckNote.TOO_LONG if is_too_long else CheckNote.NO_PAGE
    faults = {vote.fault for vote in verdict.votes if vote.fault is not None}
    if verdict.outcome is not Outcome.NOT_JUDGED or faults <= {Reason.LLM_OUTPUT_UNUSABLE}:
        return None  # the model gave no verdict on this content, which is not an error
    return CheckNote.ERROR


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts on several sources, given in the order in which the answer cites them.

    The first source that supports the claim decides, preferably with a quote that code found, and only its requests
    count. Otherwise a source without a verdict
    leaves the claim not judged. The claim fails only if every source was judged and none supports it.
    """
    evidence = tuple(dict.fromkeys(digest for verdict in verdicts for digest in verdict.evidence))
    votes = tuple(vote for verdict in verdicts for vote in verdict.votes)
    deciding = _deciding(verdicts)
    needed = [deciding] if deciding.outcome is Outcome.PASSED else verdicts
    others = [verdict for verdict in verdicts if not any(verdict is each for each in needed)]
    if deciding.outcome is Outcome.PASSED:
        evidence, votes, reasoning = deciding.evidence, deciding.votes, deciding.reasoning
    else:
        reasoning = "\n".join(dict.fromkeys(verdict.reasoning for verdict in verdicts if verdict.reasoning))
    judged = next((verdict for verdict in verdicts if verdict.prompt is not None), deciding)
    return Verdict(
        outcome=deciding.outcome,
        reason=deciding.reason,
        reasoning=reasoning,
        votes=votes,
        quotes=deciding.quotes,
        evidence=evidence,
        prompt=judged.prompt,
        model=judged.model,
        usage=sum((verdict.usage for verdict in needed), Usage()),
        requests=tuple(request for verdict in needed for request in verdict.requests),
        unneeded=tuple(request for verdict in others for request in _requests(verdict)),
        grounded=deciding.grounded,
        checks=tuple(check for verdict in verdicts for check in verdict.checks),
        signals=deciding.signals,
        supplied=any(verdict.supplied for verdict in needed),
    )


def _requests(verdict: Verdict) -> tuple[ModelRequest, ...]:
    """The requests behind a verdict; one without a key if they are not known one by one."""
    if verdict.requests or verdict.usage == Usage():
        return verdict.requests
    return (ModelRequest(key="", usage=verdict.usage),)


def _deciding(verdicts: Sequence[Verdict]) -> Verdict:
    supporting = [verdict for verdict in verdicts if verdict.outcome is Outcome.PASSED]
    if supporting:
        grounded = [verdict for verdict in supporting if verdict.grounded is not False]
        return next(iter(filter(counts_strictly, grounded)), (grounded or supporting)[0])
    for verdict in verdicts:
        if verdict.outcome is Outcome.NOT_JUDGED:
            return verdict
    # No source supports the claim. Prefer a page that was read to one that is gone or does not count.
    unread = (Reason.SOURCE_GONE, Reason.SOURCE_FORBIDDEN)
    return next((verdict for verdict in verdicts if verdict.reason not in unread), verdicts[0])
