"""``assay pages import`` and ``assay pages export``: page caches in the public layout, and saved pages (MHTML).

Imported data is untrusted. Archives are unpacked into a temporary folder within limits, links are refused, and only
files whose names belong to the layout are read.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from answers.public_layout import ArchiveLimits, read_members
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
from app.engine.public_cache import ImportSummary, PublicCache
from app.engine.runtime import Runtime
from app.errors import AppError
from app.settings import Settings
from cache.capture import Capture, CaptureSource
from cache.errors import DocumentRejected
from cache.sources.uploads import UploadedPage, is_mhtml, observe_upload, read_mhtml
from cache.urls import unfetchable_reason

INDEX = "index.json"
LIMITS = ArchiveLimits(member_bytes=64 * 1024 * 1024, total_bytes=512 * 1024 * 1024)
SAVED_SUFFIXES = frozenset({".mhtml", ".mht"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PAGE_FILE = re.compile(r"[0-9a-f]{32}\.(?:txt|jpg|pdf)|index(?:\.metadata)?\.json")
_MAX_DEPTH = 3
_MIN_DEPTH_OF_AGENTS = 2
"""Depth from which the folder above a task is the agent's. At smaller depths it is the folder that the user passed."""


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
    if source.is_file() and not is_archive(source):
        rows = event_loop.run(_import(settings, [], [source], page_url))
    else:
        with unpacked_source(source) as folder:
            caches = task_caches(folder, agent, task or ())
            saved = saved_pages(folder)
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
            summary = await import_task(runtime, cache)
            counts = {"new": summary.new, "same": summary.same, "damaged": summary.damaged}
            rows.append({"agent": cache.agent, "task_id": cache.task_id, **counts})
        for file in saved:
            page = await import_saved_page(runtime, file, url=url, now=runtime.clock.now())
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
    """Export the captured pages of answers in the public layout."""
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


class TransferRefused(AppError):
    """The source cannot be imported, or not safely. The message names the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCache:
    """Page cache of one task: the folder ``root/agent/task_id``."""

    root: Path
    agent: str
    task_id: str


def is_archive(source: Path) -> bool:
    """Return whether a file is a zip, tar or tar.gz, judged by its first bytes."""
    try:
        with source.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise TransferRefused(f"Cannot read {source}: {error.strerror}") from error
    return head.startswith((b"PK", b"\x1f\x8b")) or head[257:262] == b"ustar"


@contextmanager
def unpacked_source(source: Path) -> Iterator[Path]:
    """Yield the folder itself, or the folder of a temporarily unpacked archive.

    Raises:
        TransferRefused: the source does not exist.
        InvalidSubmission: the archive is damaged, exceeds a limit, or contains something other than regular files.
    """
    if source.is_dir():
        yield source
        return
    if not source.is_file():
        raise TransferRefused(f"{source}: no such file or folder")
    with tempfile.TemporaryDirectory(prefix="assay-import-") as folder:
        _unpack(source, Path(folder))
        yield Path(folder)


def _unpack(source: Path, folder: Path) -> None:
    with source.open("rb") as file:
        for name, data in read_members(file, LIMITS):
            path = PurePosixPath(name)
            if len(path.parts) > _MAX_DEPTH + 1 or not (_is_layout_file(path) or path.suffix.lower() in SAVED_SUFFIXES):
                continue  # not part of the layout
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise TransferRefused(f"{source}: {name} points outside the archive")
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            except OSError as error:
                raise TransferRefused(f"{source}: cannot unpack {name}: {error.strerror}") from error


def _is_layout_file(path: PurePosixPath) -> bool:
    """Return whether a file belongs to a page cache: a page, an index, or the URL list of a pre-capture."""
    return bool(_PAGE_FILE.fullmatch(path.name)) or (path.suffix == ".json" and bool(_NAME.fullmatch(path.stem)))


def task_caches(folder: Path, agent: str | None, tasks: Sequence[str]) -> list[TaskCache]:
    """Return the task caches below a folder: a whole cache, the cache of an agent, or of one task.

    Raises:
        TransferRefused: a cache contains a symbolic link or has an invalid name.
    """
    caches = []
    for depth in range(_MAX_DEPTH + 1):
        for index in sorted(folder.glob("/".join(["*"] * depth + [INDEX]))):
            task_folder = index.parent.absolute()
            cache = TaskCache(root=task_folder.parent.parent, agent=task_folder.parent.name, task_id=task_folder.name)
            if (agent is not None and cache.agent != agent and depth >= _MIN_DEPTH_OF_AGENTS) or (
                tasks and cache.task_id not in tasks
            ):
                continue
            _refuse_links(task_folder)
            caches.append(cache)
    return caches


def _refuse_links(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        if path.is_symlink():
            raise TransferRefused(f"{path} is a symbolic link; replace it by a copy of its target")


def saved_pages(folder: Path) -> list[Path]:
    """Return the single-file pages (MHTML) below a folder, sorted. Symbolic links are skipped."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SAVED_SUFFIXES and path.is_file() and not path.is_symlink()
    )


async def import_task(runtime: Runtime, cache: TaskCache) -> ImportSummary:
    """Create captures for the pages of one task.

    Raises:
        CacheError: the local store cannot be written.
    """
    return await PublicCache(cache.root).import_pages(runtime, cache.agent, cache.task_id, (), with_parts=True)


async def import_saved_page(runtime: Runtime, file: Path, *, url: str | None, now: datetime) -> Capture:
    """Create a capture of one saved page: MHTML, or with ``url`` a PDF, HTML, text or image file.

    Raises:
        TransferRefused: the file cannot be read, or its URL is unknown.
        CacheError: the local store cannot be written.
    """
    try:
        data = await asyncio.to_thread(_read_limited, file)
        cited = url or await asyncio.to_thread(_mhtml_url, data)
        problem = "its URL is unknown; give it with --url" if cited is None else unfetchable_reason(cited)
        if cited is None or problem is not None:
            raise TransferRefused(f"{file}: {problem}")
        observation = await observe_upload(
            UploadedPage(url=cited, uploader=file.name, uploaded_at=now, content=data), source=CaptureSource.IMPORT
        )
    except DocumentRejected as error:
        raise TransferRefused(f"{file}: {error}") from error
    return await runtime.pages.add(cited, observation)


def _read_limited(file: Path) -> bytes:
    try:
        if file.stat().st_size > LIMITS.member_bytes:
            raise TransferRefused(f"{file} has more than {LIMITS.member_bytes} bytes")
        return file.read_bytes()
    except OSError as error:
        raise TransferRefused(f"Cannot read {file}: {error.strerror}") from error


def _mhtml_url(data: bytes) -> str | None:
    return read_mhtml(data).url if is_mhtml(data) else None


async def export_task(
    runtime: Runtime, folder: Path, agent: str, task_id: str, cited: Mapping[str, Sequence[str]]
) -> list[str]:
    """Write the evidence of the cited pages to a folder in the public layout. Return the URLs without evidence.

    Raises:
        CacheError: the local store cannot be read.
        TransferRefused: the folder cannot be written.
    """
    public = PublicCache(folder)
    try:
        await public.export_pages(runtime, agent, task_id, cited)
    except OSError as error:
        raise TransferRefused(f"Cannot write {folder}: {error.strerror}") from error
    return await public.missing_urls(agent, task_id, cited)
