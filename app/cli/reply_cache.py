"""``assay admin cache``: count and clear the cached replies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from app.console.connection import JsonOption
from app.console.errors import duration, reject_given, require_folder
from app.console.runtime import run_in_database
from app.console.streams import print_json, stdout_console
from app.engine.model_clients import reply_folder
from app.engine.public_cache import PublicCache
from app.settings import Settings, load_settings
from app.storage.database import Database
from app.storage.reply_cache import cache_size, clear_cache
from judges.llm.cached import CacheSize, FolderReplyCache

CacheOption: TypeAlias = Annotated[
    Path | None, typer.Option("--cache", help="Page cache used with `assay evaluate` (default: the data folder).")
]


def cache(
    context: typer.Context,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove the replies. Their requests are sent again when needed.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(help="With --clear: only replies that were not used for this long: 90m, 12h, 30d, 2w."),
    ] = None,
    folder: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the cached replies, or remove them."""
    if not clear:
        reject_given(context, "requires --clear", "--older-than")
    age = None if older_than is None else duration(older_than, option="--older-than")
    before = None if age is None else datetime.now(UTC) - age
    # Clear the shared cache first. Otherwise removed replies would return from it.
    is_shared = folder is None and load_settings().shared_reply_cache_bytes > 0
    shared = _in_database(before, clear=clear) if is_shared else None
    sizes = [
        store.clear(used_before=None if before is None else before.timestamp()) if clear else store.size()
        for store in _stores(folder)
    ]
    own = CacheSize(sum(size.entries for size in sizes), sum(size.bytes for size in sizes))
    if as_json:
        name = "removed" if clear else "replies"
        extra = {} if shared is None else {"shared": {name: shared.entries, "bytes": shared.bytes}}
        print_json({name: own.entries, "bytes": own.bytes, **extra})
        return
    for prefix, size in (("", own), ("shared by all workers: ", shared)):
        if size is not None:
            done = " removed" if clear else ""
            stdout_console().print(f"{prefix}{size.entries} replies{done}, {_size(size.bytes)}", markup=False)


def _in_database(before: datetime | None, *, clear: bool) -> CacheSize:
    async def count_or_clear(settings: Settings, database: Database) -> CacheSize:
        async with database.begin() as connection:
            if clear:
                return await clear_cache(connection, used_before=before)
            return await cache_size(connection)

    return run_in_database(count_or_clear)


def _stores(cache: Path | None) -> list[FolderReplyCache]:
    """Open the reply caches: that of the data folder, or those of all agents in a page cache."""
    if cache is None:
        return [FolderReplyCache(reply_folder(load_settings().data_dir))]
    require_folder("--cache", cache)
    return [FolderReplyCache(reply_folder(folder)) for folder in PublicCache(cache).evidence_folders()]


def _size(count: int) -> str:
    """Format a number of bytes."""
    return f"{count / 1024**2:.1f} MiB" if count >= 1024**2 else f"{count / 1024:.1f} KiB"
