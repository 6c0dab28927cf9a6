"""Which files a run over HTTP may read: those in folders that the operator named in ASSAY_SUITE_DATA, and no others.

Paths are followed to their ends, links and ``..`` included, before they are compared. A path outside and one that does
not exist get the same answer, so nobody learns what else is on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.features.suites.errors import PathNotAllowed

_MOST_CHARS = 1000
_MOST_ENTRIES = 20_000


class DataPlaces:
    """The folders of one process."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def without_folders(self, text: str) -> str:
        """An error's text with paths as their users know them: where the folders lie is the operator's business."""
        for folder in sorted({str(each) for one in self._folders for each in (one, one.resolve())}, reverse=True):
            text = text.replace(f"{folder}/", "").replace(folder, ".")
        return text

    def allowed(self, given: str) -> Path:
        """The file or folder that ``given`` means: absolute, or below one of the folders. Blocks on the disk.

        Raises:
            PathNotAllowed
        """
        if not self._folders:
            raise PathNotAllowed("this service reads no benchmark data: its operator has not set ASSAY_SUITE_DATA")
        if not given or "\0" in given or len(given) > _MOST_CHARS:
            raise PathNotAllowed("is no path")
        roots = [folder.resolve() for folder in self._folders]
        for root in roots:
            found = _existing(root / given)
            if found is not None and any(found.is_relative_to(root) for root in roots):
                _check_inside(found, roots)
                return found
        raise PathNotAllowed("is in no folder of ASSAY_SUITE_DATA, or does not exist there")


def _existing(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):  # missing, too long, a ring of links
        return None


def _check_inside(found: Path, roots: Sequence[Path]) -> None:
    """What lies in a folder is read too, so no link in it may lead out of the folders either."""
    seen = 0
    for folder, folders, files in os.walk(found):  # nothing for a file; links to folders are not entered
        for name in (*folders, *files):
            seen += 1
            entry = Path(folder, name)
            if seen > _MOST_ENTRIES:
                raise PathNotAllowed(f"is a folder of more than {_MOST_ENTRIES} files; name one further down")
            if not entry.is_symlink():
                continue
            target = _existing(entry)
            if target is None or not any(target.is_relative_to(root) for root in roots):
                raise PathNotAllowed(f"holds a link, {name}, that leads out of the folders of ASSAY_SUITE_DATA")
