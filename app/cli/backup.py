"""``assay backup`` and ``assay restore``: all that the service knows, in one folder, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.console.database import in_database
from app.console.streams import remarks


def backup(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet.")]) -> None:
    """Write database and stored pages into a folder; the service may go on meanwhile."""
    from app.maintenance.backup import back_up

    with_pages = in_database(lambda settings, database: back_up(settings, database, folder.absolute()))
    pages = (
        "database and stored pages" if with_pages else "database; copy the stored pages where ASSAY_BLOBS keeps them"
    )
    remarks().print(f"backed up to {folder}: {pages}", markup=False, soft_wrap=True)


def restore(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A backup of `assay backup`.")]) -> None:
    """Bring a backup back, into a database that holds nothing yet."""
    from app.maintenance.backup import restore as bring_back

    in_database(lambda settings, database: bring_back(settings, database, folder.absolute()), migrated=False)
    remarks().print(
        f"restored from {folder}; `assay doctor` tells whether every stored page is there", markup=False, soft_wrap=True
    )
