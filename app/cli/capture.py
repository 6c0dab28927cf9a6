"""``assay pages capture``: capture all cited pages before judging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

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
from app.console.progress import ProgressBoard
from app.console.runtime import open_command_runtime
from app.console.streams import counted, print_json, stderr_console
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
        console = stderr_console()
        with ProgressBoard(console, len(urls), unit="pages") as board:
            pages = await capture_pages(
                runtime, urls, lambda page: board.finish(page.url, _line(page)), refresh=refresh, near=near
            )
        outcomes = ", ".join(f"{count} {name}" for name, count in Counter(map(_outcome, pages)).most_common())
        console.print_line(f"{counted(len(pages), 'page')}: {outcomes}")
        if public is not None:
            for (agent, task_id), by_url in cited.items():
                await public.export_pages(runtime, agent, task_id, by_url)
    return pages


def _line(page: CapturedPage) -> str:
    """Return a line with markup for a page: its outcome, URL and detail."""
    detail = page.error or (page.capture.detail if page.capture is not None else "")
    outcome = f"{_outcome(page):<15}"
    outcome = outcome if page.is_conclusive else f"[yellow]{outcome}[/]"
    return f"{outcome}  {escape(page.url)}  {escape(detail)}".rstrip()


def _outcome(page: CapturedPage) -> str:
    if page.capture is not None and page.capture.gone:
        return "gone"
    return "captured before" if page.known and page.is_conclusive else page.outcome


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
