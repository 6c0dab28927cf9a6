"""Atomic file creation: write to a temporary file, then rename it.

A temporary file that a killed process left behind is removed by the next write to the same folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from cache.fsync import sync_file

_SUFFIX = ".bundle-part"


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed to ``target`` unless the block raises. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts(target.parent)
    draft = target.with_name(f".{uuid4().hex}{_SUFFIX}")
    try:
        with draft.open("x+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
            draft.replace(target)
        sync_file(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def remove_stale_drafts(folder: Path) -> int:
    """Remove temporary files that no process has locked. Return the number of removed files."""
    removed = 0
    for draft in folder.glob(f".*{_SUFFIX}"):
        try:
            with draft.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink(missing_ok=True)
                removed += 1
        except OSError:
            continue  # locked by another process, or already renamed
    return removed
