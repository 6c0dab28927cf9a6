"""Files that appear completely or not at all, durable writes (files and folders synced to disk), and file locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from uuid import uuid4

_numbers = count()


@contextmanager
def atomic_path(target: Path, *, synced: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``target`` unless the block raises. Raises OSError.

    The folder is created if necessary. ``synced``: the file survives a crash of the machine.
    """
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(draft_name())
    with _replacing(target, draft, synced=synced):
        yield draft


def write_atomic(target: Path, data: bytes, *, synced: bool = False) -> None:
    """Write a file atomically, see ``atomic_path``. Raises OSError with the path."""
    draft = target.with_name(draft_name())
    with _replacing(target, draft, synced=synced):
        write_new_file(draft, data)


@contextmanager
def _replacing(target: Path, draft: Path, *, synced: bool) -> Iterator[None]:
    """Replace ``target`` with ``draft``, which the block writes. If the block raises, remove ``draft``."""
    try:
        yield
        if synced:
            sync_file(draft)
        draft.replace(target)
        if synced:
            sync_file(target.parent)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(draft)):
            error.filename = str(target)  # a full disk is reported without a path, or with that of the draft
        raise


def draft_name() -> str:
    """Return a name for a temporary file that no other call and no other process returns."""
    return f".{_process_name(os.getpid())}-{next(_numbers)}.tmp"


@cache
def _process_name(pid: int) -> str:
    return uuid4().hex


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet. Its folder is created if necessary. Raises OSError.

    It makes as few system calls as possible, because a thread hands over the interpreter to others around each one,
    which costs more than the call.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, flags, 0o666)
    try:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Sync the content of a file to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folder: Path, top: Path) -> None:
    """Sync a folder and its parents up to ``top``. A new folder is durable only after its parent is synced."""
    for place in (folder, *folder.parents):
        sync_file(place)
        if place == top:
            return


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder among processes and threads. Blocks. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
