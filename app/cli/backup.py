"""``assay admin backup`` and ``assay admin restore``: backup of the service in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.console.database import run_in_database
from app.console.streams import stderr_console


def backup(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create.")]) -> None:
    """Write the database and the stored pages into a folder. The service may be running."""
    from app.maintenance.backup import back_up

    with_pages = run_in_database(lambda settings, database: back_up(settings, database, folder.absolute()))
    pages = (
        "database and stored pages" if with_pages else "database only; back up the stored pages in ASSAY_BLOBS yourself"
    )
    stderr_console().print_line(f"backed up to {folder}: {pages}")


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by `assay admin backup`.")],
) -> None:
    """Restore a backup into an empty database."""
    from app.maintenance.backup import restore as restore_backup

    run_in_database(lambda settings, database: restore_backup(settings, database, folder.absolute()), migrated=False)
    stderr_console().print_line(f"restored from {folder}; run `assay doctor` to check that all stored pages exist")
