"""A backup in one folder: the database as PostgreSQL's own archive, the stored pages, and the installation's secret.

The database is written first and the pages after it. Pages are only ever added, so every page that the database names
is in the copy, unless it was pruned meanwhile. Where pages are in S3 they are left to the means of that store.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.errors import WrongSettings
from app.settings import Settings
from app.storage.database import Database
from app.storage.dumping import dump, load

DATABASE = "database.dump"
PAGES = "blobs"
SECRET = "secret"  # noqa: S105 - the name of a file


async def back_up(settings: Settings, database: Database, folder: Path) -> bool:
    """Write a backup into ``folder``, which must not exist. Returns whether the stored pages are in it.

    Raises:
        WrongSettings: the folder cannot be written, or is there already.
        DatabaseUnavailable: the database could not be read to its end.
    """
    aside = folder.with_name(f"{folder.name}.part")
    pages = pages_folder(settings)
    try:
        await asyncio.to_thread(_make_room, folder, aside)
        await dump(database, aside / DATABASE)
        await asyncio.to_thread(_copy_files, settings, pages, aside)
        # Only what is whole gets the name: a backup that was interrupted is none.
        aside.rename(folder)
    except OSError as error:
        raise WrongSettings(f"no backup can be made in {folder}: {error}") from error
    return pages is not None


async def restore(settings: Settings, database: Database, folder: Path) -> None:
    """Bring a backup back into an empty database, and its pages to where the settings keep them.

    Raises:
        WrongSettings: ``folder`` holds no backup, the database holds something, or a file cannot be written.
        DatabaseUnavailable: the database refused it; nothing of it was changed.
    """
    dumped = folder / DATABASE
    if not await asyncio.to_thread(dumped.is_file):
        raise WrongSettings(f"{folder} holds no backup: there is no {DATABASE} in it")
    await load(database, dumped)
    try:
        await asyncio.to_thread(_bring_files_back, settings, folder)
    except OSError as error:
        raise WrongSettings(f"the database is back, but the stored pages are not: {error}") from error


def pages_folder(settings: Settings) -> Path | None:
    """The folder of the stored pages; None where they are not in one."""
    if not settings.blobs:
        return settings.data_dir.absolute() / "blobs"
    place = urlsplit(settings.blobs)
    return Path(unquote(place.path)) if place.scheme == "file" else None


def _make_room(folder: Path, aside: Path) -> None:
    if folder.exists():
        raise FileExistsError("it is there already")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True, mode=0o700)


def _copy_files(settings: Settings, pages: Path | None, aside: Path) -> None:
    if pages is not None and pages.exists():
        shutil.copytree(pages, aside / PAGES)
    if (settings.data_dir / SECRET).exists():
        shutil.copy2(settings.data_dir / SECRET, aside / SECRET)


def _bring_files_back(settings: Settings, folder: Path) -> None:
    pages = pages_folder(settings)
    if pages is not None and (folder / PAGES).exists():
        shutil.copytree(folder / PAGES, pages, dirs_exist_ok=True)
    if (folder / SECRET).exists():
        shutil.copy2(folder / SECRET, settings.data_dir / SECRET)
