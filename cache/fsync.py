"""Durable writes: sync files and their folders to disk."""

from __future__ import annotations

import os
from pathlib import Path


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


def write_synced(target: Path, data: bytes) -> None:
    """Write a file atomically and durably. Raises OSError."""
    draft = target.with_suffix(".tmp")
    draft.write_bytes(data)
    sync_file(draft)
    draft.replace(target)
    sync_file(target.parent)
