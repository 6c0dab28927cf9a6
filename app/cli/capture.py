"""``assay capture``: capture every cited page ahead of time, so that judging waits for no page."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from app.cli.connection import JsonOption
from app.cli.console import print_json, remarks
from app.cli.errors import Exit, Interrupted
from app.cli.judging import (
    AgentOption,
    AnswersOption,
    CacheOption,
    MaxPagesOption,
    TaskOption,
    find_answers,
    judging_settings,
    quiet_logging,
)

if TYPE_CHECKING:
    from answers.submission import Submission
    from app.precapture import Page
    from app.public_cache import PublicCache
    from app.settings import Settings


def capture(
    agent: AgentOption,
    task: TaskOption = None,
    answers: AnswersOption = Path("answers"),
    cache: CacheOption = None,
    max_pages: MaxPagesOption = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Capture again what has been captured.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Capture every page that an agent's answers cite."""
    from app.public_cache import PublicCache

    public = None if cache is None else PublicCache(cache)
    evidence = None if public is None else public.evidence_folder(agent)
    settings = judging_settings(evidence=evidence, max_pages=max_pages)
    quiet_logging(settings)
    submissions = find_answers(answers, agent, task or ())
    try:
        pages = asyncio.run(_run(settings, submissions, public, refresh=refresh))
    except KeyboardInterrupt:
        raise Interrupted("stopped; what is captured is kept, and the same command goes on from there") from None
    if as_json:
        print_json({"agent_name": agent, "pages": [_as_json(page) for page in pages]})
    if not all(page.settled for page in pages):
        raise typer.Exit(Exit.INCOMPLETE)


async def _run(
    settings: Settings, submissions: Sequence[Submission], public: PublicCache | None, *, refresh: bool
) -> list[Page]:
    from app.precapture import capture_pages, cited_in
    from app.runtime import open_runtime

    cited = cited_in(submissions)
    urls = list(dict.fromkeys(url for by_url in cited.values() for url in by_url))
    async with open_runtime(settings) as runtime:
        if public is not None and not refresh:
            for (agent, task_id), by_url in cited.items():
                await public.bring_in(runtime, agent, task_id, by_url)
        with CaptureTable(remarks(), len(urls)) as table:
            pages = await capture_pages(runtime, urls, table.done, refresh=refresh)
        if public is not None:
            for (agent, task_id), by_url in cited.items():
                await public.keep(runtime, agent, task_id, by_url)
    return pages


class CaptureTable:
    """Pages by outcome and how fast they come: live on a terminal, elsewhere a line for each page and a last table."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._started = time.monotonic()
        self._counts: Counter[str] = Counter()
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

    def done(self, page: Page) -> None:
        self._counts["had it already" if page.known else page.outcome] += 1
        self._new += not page.known
        detail = page.error or (page.capture.detail if page.capture is not None else "")
        if not page.settled or not self._console.is_terminal:
            self._console.print(f"{page.outcome:<14} {escape(page.url)}  {escape(detail)}".rstrip(), soft_wrap=True)
        self._live.update(self._table(), refresh=self._console.is_terminal)

    def _table(self) -> Table:
        seconds = max(time.monotonic() - self._started, 1e-3)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
        done = sum(self._counts.values())
        table.add_column("outcome", footer=f"{done} of {self._total} pages")
        table.add_column("pages", justify="right", footer=f"{60 * self._new / seconds:.0f}/min" if self._new else "")
        for outcome, count in self._counts.most_common():
            table.add_row(outcome, str(count))
        return table


def _as_json(page: Page) -> dict[str, object]:
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
