from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from app.console.progress import JobBoard, ProgressBoard
from assay_client import Job


def job(status: str, **more: Any) -> Job:
    return Job.from_json({"id": "j1", "status": status, "progress": {"pages_total": 3, "pages_done": 1}, **more})


def printed_lines(*jobs: Job) -> list[str]:
    written = StringIO()
    with ProgressBoard(Console(file=written, width=80, highlight=False), 1) as board:
        for one in jobs:
            JobBoard(board, {"j1": "otter bridge"}).show(one)
    return written.getvalue().splitlines()


def test_job_is_shown_from_start_to_end() -> None:
    assert printed_lines(
        job("queued"), job("running", stage="capturing"), job("running", stage="judging"), job("succeeded")
    ) == ["otter bridge  capturing", "otter bridge  judging", "otter bridge  judged"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_job_without_a_result_shows_its_error_in_one_line(status: str) -> None:
    error = {"code": "JUDGE_BUG", "detail": "it raised [this]\nsecond line"}

    assert printed_lines(job(status, error=error)) == [f"otter bridge  {status}  JUDGE_BUG: it raised [this]"]


def test_cancelled_job_needs_no_reason() -> None:
    assert printed_lines(job("cancelled")) == ["otter bridge  cancelled"]
