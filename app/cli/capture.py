"""``assay pages capture``: capture all cited pages before judging."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from answers.submission import Submission
from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit
from app.console.judging_options import (
    AgentOption,
    AnswersOption,
    CacheOption,
    MaxPagesOption,
    TaskOption,
    find_answers,
    judging_settings,
    quiet_logging,
)
from app.console.runtime import open_command_runtime
from app.console.streams import print_json, stderr_console
from app.engine.precapture import CapturedPage, capture_pages, cited_in
from app.engine.public_cache import PublicCache
from app.settings import Settings


def capture(
    agent: AgentOption,
    task: TaskOption = None,
    answers: AnswersOption = Path("answers"),
    cache: CacheOption = None,
    max_pages: MaxPagesOption = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Capture all pages again.")] = False,
    answered_at: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], metavar="YYYY-MM-DD", help="Date of the answers, to select copies in the web archive."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Capture all pages that the answers of an agent cite. Skips captured pages unless --refresh is given."""
    submissions = find_answers(answers, agent, task or ())
    public = None if cache is None else PublicCache(cache)
    evidence = None if public is None else public.evidence_folder(agent)
    settings = judging_settings(evidence=evidence, max_pages=max_pages)
    quiet_logging(settings)
    near = None if answered_at is None else answered_at.replace(tzinfo=UTC)
    with event_loop.resumable("Finished captures are saved; run the same command to resume."):
        pages = event_loop.run(_run(settings, submissions, public, refresh=refresh, near=near))
    if as_json:
        print_json({"agent": agent, "pages": [_as_json(page) for page in pages]})
    if not all(page.is_conclusive for page in pages):
        raise typer.Exit(Exit.INCOMPLETE)


async def _run(
    settings: Settings,
    submissions: Sequence[Submission],
    public: PublicCache | None,
    *,
    refresh: bool,
    near: datetime | None,
) -> list[CapturedPage]:
    cited = cited_in(submissions)
    urls = list(dict.fromkeys(url for by_url in cited.values() for url in by_url))
    async with open_command_runtime(settings, shared=public is None) as runtime:
        if public is not None and not refresh:
            for (agent, task_id), by_url in cited.items():
                await public.import_pages(runtime, agent, task_id, by_url)
        with CaptureTable(stderr_console(), len(urls)) as table:
            pages = await capture_pages(runtime, urls, table.add_page, refresh=refresh, near=near)
        if public is not None:
            for (agent, task_id), by_url in cited.items():
                await public.export_pages(runtime, agent, task_id, by_url)
    return pages


class CaptureTable:
    """Table of captured pages by outcome, with the capture rate.

    It is live on a terminal. Otherwise each page prints one line, and the table is printed at the end.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._started = time.monotonic()
        self._usable: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._new = 0
        self._live = Live(self._table(), console=console, auto_refresh=console.is_terminal)

    def __enter__(self) -> CaptureTable:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()
        elif exc is None:
            self._console.print(self._table())

    def add_page(self, page: CapturedPage) -> None:
        is_gone = page.capture is not None and page.capture.gone
        name = (
            "captured before"
            if page.known and page.is_conclusive and not is_gone
            else "gone"
            if is_gone
            else page.outcome
        )
        (self._usable if page.is_conclusive else self._failed)[name] += 1
        self._new += not page.known
        detail = page.error or (page.capture.detail if page.capture is not None else "")
        if not page.is_conclusive or not self._console.is_terminal:
            self._console.print(f"{name:<15}  {escape(page.url)}  {escape(detail)}".rstrip(), soft_wrap=True)
        self._live.update(self._table(), refresh=self._console.is_terminal)

    def _table(self) -> Table:
        done, failed = self._usable.total() + self._failed.total(), self._failed.total()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True)
        table.add_column("", footer="done")
        table.add_column("pages", justify="right", footer=f"{done} of {self._total}")
        table.add_column("", footer=f"{failed} failed, {self._rate()}" if failed else self._rate())
        for outcome, count in self._usable.most_common():
            table.add_row(outcome, str(count), "")
        for outcome, count in self._failed.most_common():
            table.add_row(outcome, str(count), "failed", style="yellow")
        return table

    def _rate(self) -> str:
        minutes = max(time.monotonic() - self._started, 1e-3) / 60
        return f"{self._new / minutes:.0f} pages/min" if self._new else "no new captures"


def _as_json(page: CapturedPage) -> dict[str, object]:
    capture = page.capture
    return {
        "url": page.url,
        "outcome": page.outcome,
        "known": page.known,
        "page_id": None if capture is None else capture.id,
        "final_url": None if capture is None else capture.final_url,
        "http_status": None if capture is None else capture.http_status,
        "captured_at": None if capture is None else capture.captured_at.isoformat(),
        "detail": page.error if capture is None else capture.detail,
    }
