"""Data folder: only its owner can enter it, because it contains answers, evidence, model replies and a secret."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import structlog

from app.storage.errors import DataFolderRefused

_OURS: Final = frozenset({"blobs", "captures", "postgres", "postgres.new", "replies", "secret", ".postgres.lock"})
"""Entries by which a data folder is recognized."""
_log = structlog.get_logger(__name__)


def prepare_data_folder(folder: Path) -> None:
    """Create the data folder, or close it to other users if it is open to them.

    As root, the group of the embedded database may keep its search permission (see ``open_for_group``).

    Raises:
        DataFolderRefused: other users can enter the folder, and it belongs to somebody else or contains other files.
        OSError: the folder cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    kept = stat.S_IXGRP if os.geteuid() == 0 and status.st_gid != 0 else 0
    mode = stat.S_IMODE(status.st_mode)
    if not mode & 0o077 & ~kept:
        return
    names = {each.name for each in folder.iterdir()}
    if status.st_uid != os.geteuid() or (names and not names & _OURS):
        problem = "belongs to another user" if status.st_uid != os.geteuid() else "contains other files"
        raise DataFolderRefused(
            f"Other users can enter the data folder {folder} (mode {mode:o}), which {problem}: "
            f"set ASSAY_DATA_DIR to a folder of its own, or run `chmod 700 {folder}`"
        )
    folder.chmod(mode & (0o700 | kept))
    _log.info("data folder closed to other users", folder=str(folder))


def open_for_group(folder: Path, gid: int) -> None:
    """Let one group enter the folder, without listing it: the database server runs in a subfolder as its own user.

    Raises:
        OSError: the folder belongs to another user.
    """
    status = folder.stat()
    if (status.st_gid, stat.S_IMODE(status.st_mode)) != (gid, 0o710):
        os.chown(folder, -1, gid)
        folder.chmod(0o710)
