"""Backup and restore: the database as a ``pg_dump`` archive, the page bodies and the installation's secret.

The database is copied before the page bodies. Bodies are only added, so the copy contains every body that the database
refers to, unless it was pruned in between. Bodies in S3 are not copied: use the backup features of that store.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.errors import InvalidSettings
from app.settings import Settings
from app.storage.data_folder import prepare_data_folder
from app.storage.database import Database
from app.storage.dumping import dump, load, require_empty

DUMP_NAME = "database.dump"
PAGES_FOLDER_NAME = "blobs"
SECRET_NAME = "secret"  # noqa: S105 - the name of a file


async def back_up(settings: Settings, database: Database, folder: Path) -> bool:
    """Write a backup to ``folder``, which must not exist. Return whether it includes the page bodies.

    Raises:
        InvalidSettings: The folder exists already, or cannot be written.
        DatabaseUnavailable: The database could not be read completely.
    """
    partial = folder.with_name(f"{folder.name}.part")
    pages = pages_folder(settings)
    try:
        await asyncio.to_thread(_create_partial_folder, folder, partial)
        await dump(database, partial / DUMP_NAME)
        await asyncio.to_thread(_copy_files, settings, pages, partial)
        # Renamed last, so an interrupted backup never looks complete.
        partial.rename(folder)
    except OSError as error:
        raise InvalidSettings(f"Cannot write a backup to {folder}: {error}") from error
    return pages is not None


async def restore(settings: Settings, database: Database, folder: Path) -> None:
    """Restore a backup into an empty database, and its page bodies into the configured folder.

    The database is restored last, in one transaction, so that an interrupted or failed restore can be repeated.

    Raises:
        InvalidSettings: ``folder`` is not a backup, the database is not empty, or a file cannot be written.
        DatabaseUnavailable: The database rejected the restore. It was not changed.
    """
    dumped = folder / DUMP_NAME
    if not await asyncio.to_thread(dumped.is_file):
        raise InvalidSettings(f"{folder} is not a backup: it contains no {DUMP_NAME}")
    await require_empty(database)
    try:
        await asyncio.to_thread(_restore_files, settings, folder)
    except OSError as error:
        raise InvalidSettings(f"Cannot restore files, so the database was not restored: {error}") from error
    await load(database, dumped)


def pages_folder(settings: Settings) -> Path | None:
    """Return the folder of the page bodies; None if they are not in a local folder."""
    if not settings.blobs:
        return settings.data_dir.absolute() / "blobs"
    place = urlsplit(settings.blobs)
    return Path(unquote(place.path)) if place.scheme == "file" else None


def _create_partial_folder(folder: Path, partial: Path) -> None:
    if folder.exists():
        raise FileExistsError("the folder exists already")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)


def _copy_files(settings: Settings, pages: Path | None, partial: Path) -> None:
    if pages is not None and pages.exists():
        shutil.copytree(pages, partial / PAGES_FOLDER_NAME)
    if (settings.data_dir / SECRET_NAME).exists():
        shutil.copy2(settings.data_dir / SECRET_NAME, partial / SECRET_NAME)


def _restore_files(settings: Settings, folder: Path) -> None:
    prepare_data_folder(settings.data_dir)
    pages = pages_folder(settings)
    if pages is not None and (folder / PAGES_FOLDER_NAME).exists():
        shutil.copytree(folder / PAGES_FOLDER_NAME, pages, dirs_exist_ok=True)
    if (folder / SECRET_NAME).exists():
        shutil.copy2(folder / SECRET_NAME, settings.data_dir / SECRET_NAME)
