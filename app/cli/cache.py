"""``assay cache``: what is kept of the models' replies, and how to be rid of it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.cli.connection import JsonOption
from app.cli.console import output, print_json
from app.cli.errors import WrongUsage

if TYPE_CHECKING:
    from judges.llm.response_cache import ModelReplies, ReplyStore

CacheOption: TypeAlias = Annotated[
    Path | None, typer.Option("--cache", help="The page cache given to `assay evaluate`.  [default: the data folder]")
]

_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def program() -> typer.Typer:
    """The ``cache`` command with its two below it."""
    group = typer.Typer(help="List or clear the replies that models gave before.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("clear")(clear)
    return group


def list_(cache: CacheOption = None, as_json: JsonOption = False) -> None:
    """Count the stored replies, by model, with the times of their last use."""
    found = [each for store in _stores(cache) for each in asyncio.run(store.by_model())]
    models = _joined(found)
    total = {"replies": sum(each.entries for each in models), "bytes": sum(each.bytes for each in models)}
    if as_json:
        print_json({**total, "models": [_as_json(each) for each in models]})
        return
    console = output()
    if not models:
        console.print("no replies are stored")
        return
    for each in models:
        console.print(
            f"{each.model or 'unreadable'}  {each.entries} replies  {_size(each.bytes)}  "
            f"used {_day(each.oldest)} to {_day(each.newest)}",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"{total['replies']} replies, {_size(total['bytes'])}", markup=False)


def clear(
    model: Annotated[str | None, typer.Option(help="Only replies of this model, by its name in `list`.")] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Only what was not used for so long: 90m, 12h, 30d, 2w.")
    ] = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove stored replies; what they answered is asked anew."""
    used_before = None if older_than is None else datetime.now(UTC).timestamp() - _seconds(older_than)
    removed = [asyncio.run(store.clear(model=model, used_before=used_before)) for store in _stores(cache)]
    replies, size = sum(each.entries for each in removed), sum(each.bytes for each in removed)
    if as_json:
        print_json({"removed": replies, "bytes": size})
    else:
        output().print(f"{replies} replies removed, {_size(size)}", markup=False)


def _stores(cache: Path | None) -> list[ReplyStore]:
    """The reply stores: that of the data folder, or those of every agent beside a page cache."""
    from app.public_cache import PublicCache
    from app.runtime import reply_folder
    from app.settings import load_settings
    from judges.llm.response_cache import ReplyStore

    if cache is None:
        return [ReplyStore(reply_folder(load_settings().data_dir))]
    if not cache.is_dir():
        raise WrongUsage(f"--cache {cache}: there is no such folder")
    return [ReplyStore(reply_folder(folder)) for folder in PublicCache(cache).evidence_folders()]


def _joined(found: list[ModelReplies]) -> list[ModelReplies]:
    """One entry for each model, over all stores."""
    from judges.llm.response_cache import ModelReplies

    by_model: dict[str | None, list[ModelReplies]] = {}
    for each in found:
        by_model.setdefault(each.model, []).append(each)
    return [
        ModelReplies(
            model=model,
            entries=sum(each.entries for each in parts),
            bytes=sum(each.bytes for each in parts),
            oldest=min(each.oldest for each in parts),
            newest=max(each.newest for each in parts),
        )
        for model, parts in by_model.items()
    ]


def _seconds(text: str) -> int:
    given = re.fullmatch(r"([0-9]{1,6})([mhdw])", text.strip().lower())
    if given is None:
        raise WrongUsage(f"--older-than {text!r}: write a number and m, h, d or w, for example 30d")
    return int(given[1]) * _UNITS_S[given[2]]


def _as_json(each: ModelReplies) -> dict[str, Any]:
    fields = asdict(each)
    fields["replies"] = fields.pop("entries")
    return fields | {"oldest": _time(each.oldest).isoformat(), "newest": _time(each.newest).isoformat()}


def _day(seconds: float) -> str:
    return _time(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1024**2:.1f} MiB" if count >= 1024**2 else f"{count / 1024:.1f} KiB"
