from __future__ import annotations

from datetime import UTC, datetime

from app.engine.precapture import CapturedPage
from cache.capture import Capture, CaptureOutcome


def page(
    url: str, outcome: CaptureOutcome, *, known: bool = False, gone: bool = False, detail: str = ""
) -> CapturedPage:
    capture = Capture(
        id=url,
        url=url,
        key=url,
        outcome=outcome,
        captured_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_s=1.0,
        backend="none",
        detail=detail,
        gone=gone,
    )
    return CapturedPage(url=url, capture=capture, known=known)


def test_page_is_final_if_a_judge_can_use_it() -> None:
    assert page("u", CaptureOutcome.OK).is_conclusive
    assert page("u", CaptureOutcome.PARTIAL).is_conclusive
    assert page("u", CaptureOutcome.HTTP_ERROR, gone=True).is_conclusive
    assert not page("u", CaptureOutcome.HTTP_ERROR).is_conclusive
    assert not CapturedPage(url="u", capture=None, error="the disk is full").is_conclusive
