"""Import and export of page caches: folders and archives of the public layout, and saved pages.

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

from answers.public_layout import ArchiveLimits, read_members
from app.engine.public_cache import ImportSummary, PublicCache
from app.engine.runtime import Runtime
from app.errors import AppError
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
        InvalidArchive: the archive is damaged, exceeds a limit, or contains something other than regular files.
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
