from __future__ import annotations

import pytest

from cache.capture import EVIDENCE_OUTCOMES, CaptureOutcome
from cache.errors import BlobCorrupt, BlobStoreFailed, BrowserUnavailable, CacheError
from judges.source_policy import combine_verdicts, no_source_verdict, verdict_without_evidence
from rubrics.verdict import Outcome, Quote, Reason, Usage, Verdict
from tests.fakes.pages import missing

URL = "https://example.com/p"
PASSED = Verdict(
    outcome=Outcome.PASSED, reasoning="yes", usage=Usage(calls=2), evidence=("e1",), grounded=True, prompt="p@1"
)
REFUTED = Verdict(outcome=Outcome.FAILED, reason=Reason.REFUTED, reasoning="no", usage=Usage(calls=2), evidence=("e2",))
GONE = Verdict(outcome=Outcome.FAILED, reason=Reason.SOURCE_GONE, reasoning="404")
OPEN = Verdict(outcome=Outcome.NOT_JUDGED, reason=Reason.CAPTURE_BLOCKED, reasoning="captcha")


@pytest.mark.parametrize("outcome", sorted(set(CaptureOutcome) - EVIDENCE_OUTCOMES - {CaptureOutcome.FORBIDDEN}))
def test_missing_page_that_is_not_gone_is_not_judged(outcome: CaptureOutcome):
    verdict = verdict_without_evidence(missing(URL, outcome))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert verdict.reason in {
        Reason.CAPTURE_FAILED,
        Reason.PAGE_NOT_STORED,
        Reason.CAPTURE_BLOCKED,
        Reason.EGRESS_DENIED,
        Reason.EVIDENCE_CORRUPT,
        Reason.TIMEOUT,
    }
    assert outcome.value in verdict.reasoning


@pytest.mark.parametrize("outcome", [CaptureOutcome.HTTP_ERROR, CaptureOutcome.DNS_ERROR])
def test_source_known_to_be_gone_fails_the_claim(outcome: CaptureOutcome):
    verdict = verdict_without_evidence(missing(URL, outcome, gone=True))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.SOURCE_GONE)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (missing(URL, CaptureOutcome.CAPTCHA), Reason.CAPTURE_BLOCKED),
        (missing(URL, CaptureOutcome.EGRESS_DENIED), Reason.EGRESS_DENIED),
        (missing(URL, CaptureOutcome.CORRUPT), Reason.EVIDENCE_CORRUPT),
        (missing(URL, CaptureOutcome.TIMEOUT), Reason.TIMEOUT),
        (missing(URL, CaptureOutcome.SOFT_404), Reason.CAPTURE_FAILED),
        (BlobCorrupt("ab" * 32, "flipped"), Reason.EVIDENCE_CORRUPT),
        (BlobStoreFailed("ab" * 32, "disk full"), Reason.CAPTURE_FAILED),
        (BrowserUnavailable("none found"), Reason.CAPTURE_FAILED),
    ],
)
def test_each_evidence_error_has_its_reason(error: CacheError, reason: Reason):
    assert verdict_without_evidence(error).reason is reason


def test_claim_without_source_fails():
    assert (no_source_verdict().outcome, no_source_verdict().reason) == (Outcome.FAILED, Reason.NO_SOURCE)


@pytest.mark.parametrize(
    ("verdicts", "outcome", "reason"),
    [
        ([REFUTED, PASSED, OPEN], Outcome.PASSED, None),
        ([REFUTED, OPEN], Outcome.NOT_JUDGED, Reason.CAPTURE_BLOCKED),
        ([GONE, REFUTED], Outcome.FAILED, Reason.REFUTED),
        ([GONE, GONE], Outcome.FAILED, Reason.SOURCE_GONE),
        ([OPEN], Outcome.NOT_JUDGED, Reason.CAPTURE_BLOCKED),
    ],
)
def test_several_sources_fail_a_claim_only_if_all_were_judged(
    verdicts: list[Verdict], outcome: Outcome, reason: Reason | None
):
    verdict = combine_verdicts(verdicts)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_supporting_source_provides_quotes_and_usage_and_spent_includes_the_others():
    quote = Quote(text="so it is", page_id="p", start=0, end=8)
    passed = Verdict(outcome=Outcome.PASSED, usage=Usage(calls=3), quotes=(quote,), evidence=("e3",), grounded=True)
    verdict = combine_verdicts([REFUTED, passed])
    assert (verdict.quotes, verdict.evidence, verdict.grounded) == ((quote,), ("e3",), True)
    assert (verdict.usage.calls, verdict.spent.calls) == (3, 5)
