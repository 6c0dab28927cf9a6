"""Who may use the folder of the private PostgreSQL, and as whom the server runs in it.

PostgreSQL refuses to run as root, so root hands the folder to an account of its own. Ownership is
checked before anything is touched: taking over somebody's folder would lock its owner out.
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

SERVER_ACCOUNT = "pgserver"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user of this machine."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """The account that runs the server when we are root; None: it runs as ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(SERVER_ACCOUNT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_ACCOUNT]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a fixed command
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataFolderRefused(
                f"root cannot run PostgreSQL itself and no user {SERVER_ACCOUNT!r} could be made: {error}; "
                "start as an ordinary user, or set ASSAY_DATABASE_URL"
            ) from error
        entry = pwd.getpwnam(SERVER_ACCOUNT)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def check_owner(pgdata: Path, account: Account | None) -> None:
    """Make sure the database folder is ours to use. Changes nothing.

    Raises:
        DataFolderRefused: it belongs to another user, or is no folder of a PostgreSQL.
    """
    if not pgdata.exists():
        return
    try:
        owner = pgdata.stat().st_uid
        empty = not any(pgdata.iterdir())
    except OSError as error:
        raise DataFolderRefused(f"{pgdata} cannot be read: {error.strerror}") from error
    ours = account.uid if account else os.geteuid()
    if owner != ours and not (empty and owner == os.geteuid()):
        raise DataFolderRefused(
            f"{pgdata} belongs to user {_user_name(owner)}, not to {_user_name(ours)}: "
            "start as the user who made it, or set ASSAY_DATA_DIR to another folder"
        )
    if not empty and not (pgdata / "PG_VERSION").exists():
        raise DataFolderRefused(f"{pgdata} holds something, but no PostgreSQL: set ASSAY_DATA_DIR to another folder")


def open_path_for(account: Account, path: Path) -> None:
    """Let the server's account walk to ``path`` by giving closed parents the search bit, nothing more.

    With the search bit alone nobody can list those folders; what lies in them keeps its own permissions.
    """
    for parent in path.resolve().parents:
        mode = parent.stat()
        if mode.st_uid == account.uid or mode.st_mode & stat.S_IXOTH:
            continue
        _log.warning("folder opened for the database account", folder=str(parent), account=SERVER_ACCOUNT)
        try:
            parent.chmod(stat.S_IMODE(mode.st_mode) | stat.S_IXOTH)
        except OSError as error:
            raise DataFolderRefused(f"{SERVER_ACCOUNT} cannot reach {path}: {parent}: {error.strerror}") from error


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
