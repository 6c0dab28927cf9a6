"""Bringing what was written to the disk itself, so that a power cut takes neither a file nor its name."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Return when the file's bytes are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folder: Path, top: Path) -> None:
    """Sync a folder and those above it up to ``top``: each may be new, and its name lies in the one above."""
    for place in (folder, *folder.parents):
        sync_file(place)
        if place == top:
            return


def write_synced(target: Path, data: bytes) -> None:
    """Write aside, sync, rename, sync the folder: the file is there whole or not at all. Raises OSError."""
    draft = target.with_suffix(".tmp")
    draft.write_bytes(data)
    sync_file(draft)
    draft.replace(target)
    sync_file(target.parent)
