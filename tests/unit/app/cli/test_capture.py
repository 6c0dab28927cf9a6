from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from app.cli.capture import CaptureTable
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


def test_pages_are_counted_by_outcome_and_failures_listed_without_a_terminal() -> None:
    written = StringIO()

    with CaptureTable(Console(file=written, width=80), 6) as table:
        table.add_page(page("https://a.example/1", CaptureOutcome.OK))
        table.add_page(page("https://a.example/2", CaptureOutcome.OK))
        table.add_page(page("https://a.example/3", CaptureOutcome.OK, known=True))
        table.add_page(page("https://a.example/4", CaptureOutcome.TIMEOUT, detail="nothing in 60 s"))
        table.add_page(page("https://a.example/5", CaptureOutcome.HTTP_ERROR, gone=True))

    text = written.getvalue()
    assert "timeout          https://a.example/4  nothing in 60 s" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["ok", "2"] in rows
    assert ["captured", "before", "1"] in rows
    assert ["gone", "1"] in rows
    assert ["timeout", "1", "failed"] in rows
    assert ["done", "5", "of", "6", "1", "failed,"] in [row[:6] for row in rows]
    assert text.rstrip().endswith("pages/min")


def test_page_is_final_if_a_judge_can_use_it() -> None:
    assert page("u", CaptureOutcome.OK).is_conclusive
    assert page("u", CaptureOutcome.PARTIAL).is_conclusive
    assert page("u", CaptureOutcome.HTTP_ERROR, gone=True).is_conclusive
    assert not page("u", CaptureOutcome.HTTP_ERROR).is_conclusive
    assert not CapturedPage(url="u", capture=None, error="the disk is full").is_conclusive
