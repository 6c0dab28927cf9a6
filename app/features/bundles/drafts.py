"""A file that is written aside and gets its name when it is whole. What a killed process left the next one removes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from cache.fsync import sync_file

_ENDING = ".bundle-part"


@contextmanager
def draft_of(target: Path) -> Iterator[BinaryIO]:
    """A file that becomes ``target`` at the end of the block, unless that ends in an error. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(target.parent)
    draft = target.with_name(f".{uuid4().hex}{_ENDING}")
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


def remove_left_over(folder: Path) -> int:
    """Remove drafts whose makers are gone: nobody holds their lock any more. Returns how many there were."""
    removed = 0
    for draft in folder.glob(f".*{_ENDING}"):
        try:
            with draft.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink(missing_ok=True)
                removed += 1
        except OSError:
            continue  # somebody is at it, or it has just got its name
    return removed
