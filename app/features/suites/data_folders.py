"""Access control for data files of suite runs over HTTP: only files in the folders of ASSAY_SUITE_DATA.

Paths are resolved, including symbolic links and ``..``, before they are compared. A path outside the folders and a
missing path get the same error, so callers learn nothing about other files of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.errors import AppError
from app.settings import Settings

_MAX_CHARS = 1000
_MAX_ENTRIES = 20_000


class PathNotAllowed(AppError):
    """A path is outside the allowed folders or does not exist. Callers cannot distinguish the two cases."""


class DataFolders:
    """Allowed data folders of one process."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    @classmethod
    def of(cls, settings: Settings) -> DataFolders:
        return cls(settings.suite_data)

    def hide_folders(self, text: str) -> str:
        """Remove the allowed folders from paths in an error text: their location is internal to the operator."""
        for folder in sorted(
            {str(each) for allowed in self._folders for each in (allowed, allowed.resolve())}, reverse=True
        ):
            text = text.replace(f"{folder}/", "").replace(folder, ".")
        return text

    def resolve_allowed(self, path: str) -> Path:
        """Resolve a path that is absolute or relative to an allowed folder. Blocks on the disk.

        Raises:
            PathNotAllowed: the path is outside the folders, does not exist, or contains links out of the folders.
        """
        if not self._folders:
            raise PathNotAllowed("this service reads no benchmark data: ASSAY_SUITE_DATA is not set")
        if not path or "\0" in path or len(path) > _MAX_CHARS:
            raise PathNotAllowed("is not a valid path")
        roots = [folder.resolve() for folder in self._folders]
        for root in roots:
            resolved = _resolve_existing(root / path)
            if resolved is not None and any(resolved.is_relative_to(root) for root in roots):
                _check_inside(resolved, roots)
                return resolved
        raise PathNotAllowed("is not in a folder of ASSAY_SUITE_DATA, or does not exist")


def _resolve_existing(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):  # missing, too long, or a symbolic link loop
        return None


def _check_inside(path: Path, roots: Sequence[Path]) -> None:
    """Refuse symbolic links that lead out of the folders, because everything in a folder can be read."""
    entries = 0
    for folder, folders, files in os.walk(path):  # yields nothing for a file; does not follow links to folders
        for name in (*folders, *files):
            entries += 1
            entry = Path(folder, name)
            if entries > _MAX_ENTRIES:
                raise PathNotAllowed(f"is a folder with more than {_MAX_ENTRIES} files; give a subfolder")
            if not entry.is_symlink():
                continue
            target = _resolve_existing(entry)
            if target is None or not any(target.is_relative_to(root) for root in roots):
                raise PathNotAllowed(
                    f"contains a symbolic link, {name}, that leads out of the folders of ASSAY_SUITE_DATA"
                )
