"""Temporary folders of this process. A process that is ended by force removes them all at once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_folders: set[Path] = set()


def new_folder(prefix: str, *, parent: str | None = None) -> Path:
    """Create a temporary folder with mode 0700. Remove it with ``remove_folder``."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    _folders.add(folder)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a temporary folder with its contents. Errors are ignored. Blocks."""
    shutil.rmtree(folder, ignore_errors=True)
    _folders.discard(folder)


def remove_all() -> None:
    """Remove the folders that still exist, after the processes that use them were killed."""
    for folder in tuple(_folders):
        remove_folder(folder)
