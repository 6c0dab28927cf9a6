"""Ownership and permissions of the embedded PostgreSQL's folder, and the user that runs the server.

PostgreSQL refuses to run as root. If this program runs as root, a dedicated user owns the folder and runs the server.
The owner is checked before anything is changed, because taking over a folder would lock out its owner.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.storage.errors import DataFolderRefused

SERVER_USER = "pgserver"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemUser:
    """Operating system user."""

    uid: int
    gid: int


def server_user() -> SystemUser | None:
    """Return the user that runs the server if this process is root; otherwise None (the current user).

    Raises:
        DataFolderRefused: The user does not exist and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(SERVER_USER)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a fixed command
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataFolderRefused(
                f"PostgreSQL cannot run as root, and the user {SERVER_USER!r} could not be created: {error}. "
                "Start as an ordinary user, or set ASSAY_DATABASE_URL"
            ) from error
        entry = pwd.getpwnam(SERVER_USER)
    return SystemUser(uid=entry.pw_uid, gid=entry.pw_gid)


def check_owner(pgdata: Path, account: SystemUser | None) -> None:
    """Check that the database folder may be used. Changes nothing.

    Raises:
        DataFolderRefused: The folder belongs to another user, is unreadable, or contains other data.
    """
    if not pgdata.exists():
        return
    try:
        owner = pgdata.stat().st_uid
        empty = not any(pgdata.iterdir())
    except OSError as error:
        raise DataFolderRefused(f"Cannot read {pgdata}: {error.strerror}") from error
    expected = account.uid if account else os.geteuid()
    if owner != expected and not (empty and owner == os.geteuid()):
        raise DataFolderRefused(
            f"{pgdata} belongs to user {_user_name(owner)}, not to {_user_name(expected)}: "
            "start as the user who created it, or set ASSAY_DATA_DIR to another folder"
        )
    if not empty and not (pgdata / "PG_VERSION").exists():
        raise DataFolderRefused(f"{pgdata} contains files but no PostgreSQL: set ASSAY_DATA_DIR to another folder")


def grant_path_access(account: SystemUser, path: Path) -> None:
    """Give the server's user access to ``path`` by setting only the search bit on its parent folders.

    With the search bit alone, other users cannot list these folders. The permissions of their files do not change.

    Raises:
        DataFolderRefused: The permissions of a parent folder cannot be changed.
    """
    for parent in path.resolve().parents:
        mode = parent.stat()
        if mode.st_uid == account.uid or mode.st_mode & stat.S_IXOTH:
            continue
        _log.warning("folder opened for the database account", folder=str(parent), account=SERVER_USER)
        try:
            parent.chmod(stat.S_IMODE(mode.st_mode) | stat.S_IXOTH)
        except OSError as error:
            raise DataFolderRefused(f"{SERVER_USER} cannot reach {path}: {parent}: {error.strerror}") from error


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
