"""Page caches of others brought in, and ours handed out: folders and archives of the public layout, saved pages.

What comes in is nobody's word: archives are unpacked into a folder of their own within limits, links are refused, and
only files whose names belong to the layout are looked at.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from answers.archive import ArchiveLimits, read_members
from app.engine.public_cache import BroughtIn, PublicCache
from app.engine.runtime import Runtime
from app.errors import AppError
from cache.capture import Capture, CaptureSource
from cache.errors import DocumentRejected
from cache.sources.mhtml import is_mhtml, read_mhtml
from cache.sources.uploads import HandedIn, observe
from cache.urls import why_unfetchable

INDEX = "index.json"
LIMITS = ArchiveLimits(member_bytes=64 * 1024 * 1024, total_bytes=512 * 1024 * 1024)
SAVED_SUFFIXES = frozenset({".mhtml", ".mht"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PAGE_FILE = re.compile(r"[0-9a-f]{32}\.(?:txt|jpg|pdf)|index(?:\.facts)?\.json")
_DEPTH = 3
_AGENTS_FROM = 2
"""Folders down from where the name of an agent's folder is one that was given to it, and not where somebody put it."""
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class TransferRefused(AppError):
    """What was to be brought in cannot be, or not safely; the message names the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCache:
    """The page cache of one task, in a folder of its own below ``root``."""

    root: Path
    agent: str
    task_id: str


def is_archive(source: Path) -> bool:
    """Whether a file is a zip, tar or tar.gz, by its first bytes."""
    try:
        with source.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise TransferRefused(f"{source} cannot be read: {error.strerror}") from error
    return head.startswith((b"PK", b"\x1f\x8b")) or head[257:262] == b"ustar"


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The folder itself, or an archive unpacked for as long as the block lasts.

    Raises:
        TransferRefused: there is none such.
        ArchiveRefused: the archive is damaged, breaks a limit, or holds something else than plain files.
    """
    if source.is_dir():
        yield source
        return
    if not source.is_file():
        raise TransferRefused(f"{source}: there is no such file or folder")
    with tempfile.TemporaryDirectory(prefix="assay-import-") as folder:
        _unpack(source, Path(folder))
        yield Path(folder)


def _unpack(source: Path, folder: Path) -> None:
    with source.open("rb") as file:
        for name, data in read_members(file, LIMITS):
            path = PurePosixPath(name)
            if len(path.parts) > _DEPTH + 1 or not (_belongs(path) or path.suffix.lower() in SAVED_SUFFIXES):
                continue  # nothing of the layout; it is not even written
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise TransferRefused(f"{source}: {name} leads out of the archive")
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            except OSError as error:
                raise TransferRefused(f"{source}: {name} cannot be unpacked: {error.strerror}") from error


def _belongs(path: PurePosixPath) -> bool:
    """Whether a file is one of a page cache: a page, an index, or a pre-capture's list beside a folder."""
    return bool(_PAGE_FILE.fullmatch(path.name)) or (path.suffix == ".json" and bool(_NAME.fullmatch(path.stem)))


def task_caches(folder: Path, agent: str | None, tasks: Sequence[str]) -> list[TaskCache]:
    """The page caches of tasks in a folder, which may be a whole cache, that of an agent, or that of one task.

    Raises:
        TransferRefused: one of them holds a link, or has a name that is none.
    """
    found = []
    for depth in range(_DEPTH + 1):
        for index in sorted(folder.glob("/".join(["*"] * depth + [INDEX]))):
            place = index.parent.absolute()
            one = TaskCache(root=place.parent.parent, agent=place.parent.name, task_id=place.name)
            if (agent is not None and one.agent != agent and depth >= _AGENTS_FROM) or (
                tasks and one.task_id not in tasks
            ):
                continue
            _check(place)
            found.append(one)
    return found


def _check(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        if path.is_symlink():
            raise TransferRefused(f"{path} is a link; copy what it leads to in its place")


def saved_pages(folder: Path) -> list[Path]:
    """The pages saved as one file in a folder and those below it, in order; links are passed over."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SAVED_SUFFIXES and path.is_file() and not path.is_symlink()
    )


async def import_task(runtime: Runtime, cache: TaskCache) -> BroughtIn:
    """Make captures of the pages of one task.

    Raises:
        CacheError: our own store cannot be written.
    """
    return await PublicCache(cache.root).bring_in(runtime, cache.agent, cache.task_id, ())


async def import_saved(runtime: Runtime, file: Path, *, url: str | None, now: datetime) -> Capture:
    """Make a capture of one saved page: MHTML, or with its ``url`` any PDF, HTML, text or picture.

    Raises:
        TransferRefused: it cannot be read, or does not say where it is from.
        CacheError: our own store cannot be written.
    """
    try:
        data = await asyncio.to_thread(_bytes_of, file)
        cited = url or await asyncio.to_thread(_saved_url, data)
        refusal = "it does not say which page it is; name it with --url" if cited is None else why_unfetchable(cited)
        if cited is None or refusal is not None:
            raise TransferRefused(f"{file}: {refusal}")
        seen = await observe(HandedIn(url=cited, by=file.name, at=now, content=data), source=CaptureSource.IMPORT)
    except DocumentRejected as rejected:
        raise TransferRefused(f"{file}: {rejected}") from rejected
    return await runtime.pages.add(cited, seen)


def _bytes_of(file: Path) -> bytes:
    try:
        if file.stat().st_size > LIMITS.member_bytes:
            raise TransferRefused(f"{file} has more than {LIMITS.member_bytes} bytes")
        return file.read_bytes()
    except OSError as error:
        raise TransferRefused(f"{file} cannot be read: {error.strerror}") from error


def _saved_url(data: bytes) -> str | None:
    return read_mhtml(data).url if is_mhtml(data) else None


async def export_task(
    runtime: Runtime, to: Path, agent: str, task_id: str, cited: Mapping[str, Sequence[str]]
) -> list[str]:
    """Write the evidence of the cited pages into a folder of the public layout; returns those that have none.

    Raises:
        CacheError: our own store cannot be read.
        TransferRefused: the folder cannot be written.
    """
    public = PublicCache(to)
    try:
        await public.keep(runtime, agent, task_id, cited)
    except OSError as error:
        raise TransferRefused(f"{to} cannot be written: {error.strerror}") from error
    return await public.lacking(agent, task_id, cited)


def zip_folder(folder: Path, target: Path) -> None:
    """A zip of a folder's files, the same bytes for the same files; it is there whole or not at all. Blocks."""
    draft = target.with_name(f".{target.name}.tmp")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _ZIP_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                archive.writestr(info, path.read_bytes())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise TransferRefused(f"{target} cannot be written: {error.strerror}") from error
