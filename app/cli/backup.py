"""``assay admin backup`` and ``assay admin restore``: backup of the service in one folder."""

from __future__ import annotations

from asyncio import to_thread
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage, reject_given, require_folder
from app.console.judging_options import judging_settings, quiet_logging
from app.console.runtime import run_in_database
from app.console.streams import print_json, stderr_console, stdout_console
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_blobs
from app.maintenance.backup import back_up
from app.maintenance.backup import restore as restore_backup
from app.maintenance.reindex import Rebuildable, RebuildReport, rebuild
from app.settings import Settings
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import has_database, open_database
from cache.capture_index import FolderIndex


def backup(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create.")]) -> None:
    """Write the database and the stored pages into a folder. The service may be running."""
    with_pages = run_in_database(lambda settings, database: back_up(settings, database, folder.absolute()))
    pages = (
        "database and stored pages" if with_pages else "database only; back up the stored pages in ASSAY_BLOBS yourself"
    )
    stderr_console().print_line(f"backed up to {folder}: {pages}")


def restore(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder written by `assay admin backup`. With --index-only: page cache used with `assay evaluate` "
            "(default: the data folder).",
        ),
    ] = None,
    index_only: Annotated[
        bool,
        typer.Option(
            "--index-only",
            help="Only rebuild the index of captures from the stored pages, and list missing and damaged pages.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="With --index-only: read every stored page and verify its hash.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup into an empty database, or rebuild the index."""
    if index_only:
        _rebuild_index(folder, check=check, as_json=as_json)
        return
    reject_given(context, "requires --index-only", "--check", "--json")
    if folder is None:
        raise WrongUsage("DIR is missing: the folder written by `assay admin backup`")
    backup_folder = folder.absolute()
    run_in_database(lambda settings, database: restore_backup(settings, database, backup_folder), migrated=False)
    stderr_console().print_line(
        f"restored from {folder}; run `assay admin doctor` to check that all stored pages exist"
    )


def _rebuild_index(cache: Path | None, *, check: bool, as_json: bool) -> None:
    settings = judging_settings()
    quiet_logging(settings)
    folders = [settings.data_dir] if cache is None else _evidence_folders(cache)
    reports = {
        name: rebuilt
        for folder in folders
        for name, rebuilt in event_loop.run(_reindex(settings.model_copy(update={"data_dir": folder}), check=check))
    }
    if as_json:
        print_json({"indices": {name: rebuilt.as_json() for name, rebuilt in reports.items()}})
    else:
        for name, rebuilt in reports.items():
            _print_rebuilt(name, rebuilt)
    if not all(rebuilt.is_consistent for rebuilt in reports.values()):
        raise typer.Exit(Exit.INCOMPLETE)


def _evidence_folders(cache: Path) -> list[Path]:
    require_folder("DIR", cache)
    folders = PublicCache(cache).evidence_folders()
    if not folders:
        raise WrongUsage(f"{cache}: contains no captures")
    return folders


async def _reindex(settings: Settings, *, check: bool) -> list[tuple[str, RebuildReport]]:
    blobs = await to_thread(open_blobs, settings)
    async with AsyncExitStack() as stack:
        captures = settings.data_dir / "captures"
        indices: list[tuple[str, Rebuildable]] = [(str(captures), await FolderIndex.open(captures))]
        if has_database(settings):
            database = await stack.enter_async_context(open_database(settings))
            indices.append(("database", PostgresCaptureIndex(database)))
        return [(name, await rebuild(blobs, index, check=check)) for name, index in indices]


def _print_rebuilt(name: str, rebuilt: RebuildReport) -> None:
    console = stdout_console()
    console.print_line(
        f"{name}: {rebuilt.captures} captures, {rebuilt.rows} rows created or repaired, "
        f"{rebuilt.records} records written, {rebuilt.drafts} incomplete files removed, "
        f"{rebuilt.unnamed} unreferenced bodies"
    )
    for state, bodies in (("missing", rebuilt.missing), ("corrupt", rebuilt.corrupt)):
        for sha256, needed_by in bodies.items():
            console.print_line(f"  {state}  {sha256}  of {', '.join(needed_by)}")
    if rebuilt.unreadable:
        console.print(f"  unreadable  {rebuilt.unreadable} records", markup=False)
