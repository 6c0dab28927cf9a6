"""``assay pages import`` and ``assay pages export``: page caches in the public layout, and saved pages (MHTML)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import (
    AgentOption,
    AnswersOption,
    TaskOption,
    find_answers,
    judging_settings,
    quiet_logging,
)
from app.console.runtime import open_command_runtime
from app.console.streams import print_json, print_line, stderr_console, stdout_console
from app.engine.precapture import cited_in
from app.features.interop import cache_transfer as transfer
from app.features.interop.cache_transfer import TaskCache, export_task
from app.settings import Settings


def import_(
    source: Annotated[Path, typer.Argument(help="Folder or archive in the public layout, or saved pages (MHTML).")],
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent.")] = None,
    task: TaskOption = None,
    page_url: Annotated[str | None, typer.Option(help="URL of a single file, if the file does not contain it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Import captured pages. They are page caches in the public layout (folder, zip, tar), or saved pages (MHTML)."""

    if not source.exists():
        raise WrongUsage(f"{source}: no such file or folder")
    settings = judging_settings()
    quiet_logging(settings)
    if source.is_file() and not transfer.is_archive(source):
        rows = event_loop.run(_import(settings, [], [source], page_url))
    else:
        with transfer.unpacked_source(source) as folder:
            caches = transfer.task_caches(folder, agent, task or ())
            saved = transfer.saved_pages(folder)
            if not caches and not saved:
                raise WrongUsage(
                    f"{source}: nothing to import",
                    hint="Expected <agent>/<task_id>/index.json with its pages, or saved pages (.mhtml).",
                )
            rows = event_loop.run(_import(settings, caches, saved, None))
    if as_json:
        print_json({"source": str(source), "imported": rows})
    else:
        for row in rows:
            print_line(_row_text(row))
    if any(row.get("damaged") or not row.get("evidence", True) for row in rows):
        raise typer.Exit(Exit.INCOMPLETE)


async def _import(
    settings: Settings, caches: Sequence[TaskCache], saved: Sequence[Path], url: str | None
) -> list[dict[str, Any]]:

    rows: list[dict[str, Any]] = []
    async with open_command_runtime(settings, shared=True) as runtime:
        for cache in caches:
            summary = await transfer.import_task(runtime, cache)
            counts = {"new": summary.new, "same": summary.same, "damaged": summary.damaged}
            rows.append({"agent": cache.agent, "task_id": cache.task_id, **counts})
        for file in saved:
            page = await transfer.import_saved_page(runtime, file, url=url, now=runtime.clock.now())
            outcome = {"outcome": page.outcome.value, "detail": page.detail, "evidence": page.is_evidence}
            rows.append({"file": file.name, "url": page.url, "page_id": page.id, **outcome})
    return rows


def _row_text(row: Mapping[str, Any]) -> str:
    if "file" in row:
        return f"{row['file']}  {row['outcome']}  {row['url']}"
    damaged = f", {row['damaged']} damaged" if row["damaged"] else ""
    return f"{row['agent']} {row['task_id']}  {row['new']} new, {row['same']} unchanged{damaged}"


def export(
    agent: AgentOption,
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    task: TaskOption = None,
    answers: AnswersOption = Path("answers"),
    as_json: JsonOption = False,
) -> None:
    """Export the captured pages that answers cite to a folder in the public layout."""
    submissions = find_answers(answers, agent, task or ())

    settings = judging_settings()
    quiet_logging(settings)
    cited = cited_in(submissions)
    rows = event_loop.run(_export(settings, out, cited))
    if as_json:
        print_json({"agent": agent, "to": str(out), "tasks": rows})
    else:
        for row in rows:
            for url in row["without"]:
                stderr_console().print_line(f"no evidence  {url}")
        for row in rows:
            stdout_console().print(f"{row['task_id']}  {row['pages']} of {row['cited']} pages", markup=False)
        print_line(f"written: {out}")
    if any(row["without"] for row in rows):
        raise typer.Exit(Exit.INCOMPLETE)


async def _export(
    settings: Settings, to: Path, cited: Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
) -> list[dict[str, Any]]:

    rows: list[dict[str, Any]] = []
    async with open_command_runtime(settings, shared=True) as runtime:
        for (agent, task_id), by_url in cited.items():
            skipped = await export_task(runtime, to, agent, task_id, by_url)
            with_evidence = len(by_url) - len(skipped)
            rows.append({"task_id": task_id, "cited": len(by_url), "pages": with_evidence, "without": skipped})
    return rows
