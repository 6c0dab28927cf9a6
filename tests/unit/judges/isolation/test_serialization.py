from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cache.capture import Capture, CaptureOutcome, Evidence, Observation
from cache.errors import NoEvidence
from judges.errors import (
    ExtractionFailed,
    JudgeBug,
    LLMOutputUnusable,
    LLMRejected,
    LLMTimeout,
    RejectionScope,
    ScriptStopped,
    UnusableKind,
)
from judges.isolation.serialization import (
    error_from_json,
    error_to_json,
    from_json_value,
    page_from_json,
    page_to_json,
    to_json_value,
)
from rubrics.verdict import Outcome, Quote, Reason, Usage, Verdict, Vote

USAGE = Usage(calls=2, input_tokens=7, usd=None)
CAPTURE = Capture(
    id="p1",
    url="https://a.example/",
    key="https://a.example/",
    outcome=CaptureOutcome.OK,
    captured_at=datetime(2026, 1, 2, tzinfo=UTC),
    duration_s=1.5,
    backend="by hand",
    headers={"a": "b"},
)


@pytest.mark.parametrize(
    "error",
    [
        LLMTimeout("late", status=None, retry_after_s=2.0, usage=USAGE),
        LLMRejected("no", status=401, scope=RejectionScope.ENDPOINT, usage=USAGE),
        LLMOutputUnusable(UnusableKind.TRUNCATED, "cut", usage=USAGE),
        ExtractionFailed("nothing", cause_reason=Reason.TIMEOUT, usage=USAGE),
        JudgeBug("boom", traceback="line 3"),
        ScriptStopped("too much", limit="memory", traceback="x"),
        NoEvidence("https://a.example/", CaptureOutcome.BLOCKED, "403", gone=False, capture=CAPTURE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_round_trip(error: Exception):
    again = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert {**vars(again)} == {**vars(error)}


def test_unknown_exception_cannot_be_sent():
    with pytest.raises(TypeError, match="KeyError cannot be sent"):
        error_to_json(KeyError("x"))


def test_verdict_round_trips():
    verdict = Verdict(
        outcome=Outcome.PASSED,
        votes=(Vote(result=True, model="m"), Vote(result=None, model="m", fault=Reason.TIMEOUT)),
        quotes=(Quote(text="so", page_id="p1", start=1, end=3),),
        usage=USAGE,
        grounded=True,
        signals=("a",),
    )
    assert from_json_value(json.loads(json.dumps(to_json_value(verdict, Verdict))), Verdict) == verdict


def test_evidence_and_observation_round_trip():
    page = Evidence(capture=CAPTURE, text="x\ud800", links=(("a", "b"),), screenshots=(b"\xff\x00",), digests=("d",))
    page = replace(page, in_parts=True)
    assert page_from_json(json.loads(json.dumps(page_to_json(page, Evidence))), Evidence) == page
    seen = Observation(
        url="u",
        outcome=CaptureOutcome.PARTIAL,
        captured_at=CAPTURE.captured_at,
        duration_s=0.1,
        backend="b",
        screenshots=(b"1", b"2"),
        html=b"<p>",
        links=(("a", "b"),),
    )
    assert page_from_json(json.loads(json.dumps(page_to_json(seen, Observation))), Observation) == seen
