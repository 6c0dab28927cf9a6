"""``assay admin cache``: count and clear the cached replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.database import run_in_database
from app.console.durations import duration
from app.console.errors import reject_given, require_folder
from app.console.streams import print_json, stdout_console
from app.engine.model_clients import reply_folder
from app.engine.public_cache import PublicCache
from app.settings import Settings, load_settings
from app.storage.database import Database
from app.storage.reply_cache import cache_size_by_model, clear_cache
from judges.llm.cached import CachedModelReplies, CacheSize, FolderReplyCache

CacheOption: TypeAlias = Annotated[
    Path | None, typer.Option("--cache", help="Page cache used with `assay evaluate` (default: the data folder).")
]


def cache(
    context: typer.Context,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove the replies. Their requests are sent again when needed.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="With --clear: only replies of this model.")] = None,
    older_than: Annotated[
        str | None,
        typer.Option(help="With --clear: only replies that were not used for this long: 90m, 12h, 30d, 2w."),
    ] = None,
    folder: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the cached replies by model, or remove them."""
    if clear:
        _clear(model, older_than, folder, as_json=as_json)
        return
    reject_given(context, "requires --clear", "--model", "--older-than")
    _list(folder, as_json=as_json)


def _list(cache: Path | None, *, as_json: bool) -> None:
    replies = [each for store in _stores(cache) for each in event_loop.run(store.by_model())]
    models, shared = _joined(replies), _shared_by_model() if _is_shared(cache) else None
    if as_json:
        extra = {} if shared is None else {"shared": _listed(shared)}
        print_json(_listed(models) | extra)
        return
    _print_listed(models)
    if shared is not None:
        stdout_console().print("shared by all workers:")
        _print_listed(shared)


def _listed(models: Sequence[CachedModelReplies]) -> dict[str, Any]:
    return {**_total(models), "models": [_as_json(model) for model in models]}


def _total(models: Sequence[CachedModelReplies]) -> dict[str, int]:
    return {"replies": sum(model.entries for model in models), "bytes": sum(model.bytes for model in models)}


def _print_listed(models: Sequence[CachedModelReplies]) -> None:
    console, total = stdout_console(), _total(models)
    if not models:
        console.print("no cached replies")
        return
    for model in models:
        console.print_line(
            f"{model.model or 'unreadable'}  {model.entries} replies  {_size(model.bytes)}  "
            f"used {_day(model.oldest)} to {_day(model.newest)}"
        )
    console.print(f"{total['replies']} replies, {_size(total['bytes'])}", markup=False)


def _clear(model: str | None, older_than: str | None, cache: Path | None, *, as_json: bool) -> None:
    age = None if older_than is None else duration(older_than, option="--older-than")
    used_before = None if age is None else (datetime.now(UTC) - age).timestamp()
    # Clear the shared cache first. Otherwise removed replies would return from it.
    shared = _clear_shared(model, used_before) if _is_shared(cache) else None
    removed = [event_loop.run(store.clear(model=model, used_before=used_before)) for store in _stores(cache)]
    replies, size = sum(each.entries for each in removed), sum(each.bytes for each in removed)
    if as_json:
        extra = {} if shared is None else {"shared": {"removed": shared.entries, "bytes": shared.bytes}}
        print_json({"removed": replies, "bytes": size, **extra})
        return
    stdout_console().print(f"{replies} replies removed, {_size(size)}", markup=False)
    if shared is not None:
        stdout_console().print(
            f"shared by all workers: {shared.entries} replies removed, {_size(shared.bytes)}", markup=False
        )


def _is_shared(cache: Path | None) -> bool:
    return cache is None and load_settings().shared_reply_cache_bytes > 0


def _shared_by_model() -> tuple[CachedModelReplies, ...]:
    async def list_replies(settings: Settings, database: Database) -> tuple[CachedModelReplies, ...]:
        async with database.begin() as connection:
            return await cache_size_by_model(connection)

    return run_in_database(list_replies)


def _clear_shared(model: str | None, used_before: float | None) -> CacheSize:
    before = None if used_before is None else _time(used_before)

    async def clear_replies(settings: Settings, database: Database) -> CacheSize:
        async with database.begin() as connection:
            return await clear_cache(connection, model=model, used_before=before)

    return run_in_database(clear_replies)


def _stores(cache: Path | None) -> list[FolderReplyCache]:
    """Open the reply caches: that of the data folder, or those of all agents in a page cache."""
    if cache is None:
        return [FolderReplyCache(reply_folder(load_settings().data_dir))]
    require_folder("--cache", cache)
    return [FolderReplyCache(reply_folder(folder)) for folder in PublicCache(cache).evidence_folders()]


def _joined(replies: list[CachedModelReplies]) -> list[CachedModelReplies]:
    """Merge the entries of all caches by model."""
    by_model: dict[str | None, list[CachedModelReplies]] = {}
    for each in replies:
        by_model.setdefault(each.model, []).append(each)
    return [
        CachedModelReplies(
            model=model,
            entries=sum(part.entries for part in parts),
            bytes=sum(part.bytes for part in parts),
            oldest=min(part.oldest for part in parts),
            newest=max(part.newest for part in parts),
        )
        for model, parts in by_model.items()
    ]


def _as_json(each: CachedModelReplies) -> dict[str, Any]:
    fields = asdict(each)
    fields["replies"] = fields.pop("entries")
    return fields | {"oldest": _time(each.oldest).isoformat(), "newest": _time(each.newest).isoformat()}


def _day(seconds: float) -> str:
    return _time(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _size(count: int) -> str:
    """Format a number of bytes."""
    return f"{count / 1024**2:.1f} MiB" if count >= 1024**2 else f"{count / 1024:.1f} KiB"
