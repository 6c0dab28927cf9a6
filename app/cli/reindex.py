"""``assay capture reindex``: rebuild the index of captures from the stored pages."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.cache import CacheOption
from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import judging_settings, quiet_logging
from app.console.runtime import has_database
from app.console.streams import print_json, stdout_console

if TYPE_CHECKING:
    from app.maintenance.reindex import Rebuildable, RebuildReport
    from app.settings import Settings


def reindex(
    cache: CacheOption = None,
    check: Annotated[bool, typer.Option("--check", help="Read every stored body and verify its hash.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the index of captures from the stored pages. List missing and damaged bodies."""
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
    from app.engine.public_cache import PublicCache

    folders = PublicCache(cache).evidence_folders()
    if not folders:
        raise WrongUsage(f"--cache {cache}: contains no captures")
    return folders


async def _reindex(settings: Settings, *, check: bool) -> list[tuple[str, RebuildReport]]:
    from asyncio import to_thread

    from app.engine.runtime import open_blobs
    from app.maintenance.reindex import rebuild
    from app.storage.captures import PostgresCaptureIndex
    from app.storage.database import open_database
    from cache.capture_index import FolderIndex

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
