"""``assay capture import``, ``export``, ``reindex``: page caches of others in, ours out, the index made again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.connection import JsonOption
from app.cli.console import output, print_json, remarks
from app.cli.errors import Exit, WrongUsage
from app.cli.judging import AgentOption, AnswersOption, TaskOption, find_answers, judging_settings, quiet_logging

if TYPE_CHECKING:
    from app.cache_transfer import TaskCache
    from app.reindex import Rebuildable, Rebuilt
    from app.runtime import Runtime
    from app.settings import Settings


@asynccontextmanager
async def runtime_of(settings: Settings, *, shared: bool) -> AsyncIterator[Runtime]:
    """The runtime of a command. ``shared``: with the service's database, where there is one, besides the data folder,
    so that what a command brings in is found by workers and by ``assay evaluate`` alike."""
    from app.runtime import open_runtime
    from app.storage.database import open_database

    async with AsyncExitStack() as stack:
        database = None
        if shared and _has_database(settings):
            database = await stack.enter_async_context(open_database(settings))
        yield await stack.enter_async_context(open_runtime(settings, database, and_folder=True))


def _has_database(settings: Settings) -> bool:
    return settings.database_url is not None or (settings.data_dir / "postgres").is_dir()


def import_(
    source: Annotated[Path, typer.Argument(help="A folder or archive in the public layout, or pages saved as MHTML.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Only the folders of this agent.")] = None,
    task: TaskOption = None,
    url: Annotated[str | None, typer.Option(help="Which page a single file shows, where it does not say.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in pages that others captured: caches in the public layout (folder, zip, tar), pages saved as MHTML."""
    from app import cache_transfer as transfer

    if not source.exists():
        raise WrongUsage(f"{source}: there is no such file or folder")
    settings = judging_settings()
    quiet_logging(settings)
    if source.is_file() and not transfer.is_archive(source):
        rows = asyncio.run(_import(settings, [], [source], url))
    else:
        with transfer.opened(source) as folder:
            caches = transfer.task_caches(folder, agent, task or ())
            saved = transfer.saved_pages(folder)
            if not caches and not saved:
                raise WrongUsage(
                    f"{source}: nothing to bring in",
                    hint="Wanted: <agent>/<task_id>/index.json with its pages, or pages saved as .mhtml.",
                )
            rows = asyncio.run(_import(settings, caches, saved, None))
    if as_json:
        print_json({"source": str(source), "imported": rows})
    else:
        for row in rows:
            output().print(_line(row), markup=False, soft_wrap=True)
    if any(row.get("damaged") or not row.get("evidence", True) for row in rows):
        raise typer.Exit(Exit.INCOMPLETE)


async def _import(
    settings: Settings, caches: Sequence[TaskCache], saved: Sequence[Path], url: str | None
) -> list[dict[str, Any]]:
    from app import cache_transfer as transfer

    rows: list[dict[str, Any]] = []
    async with runtime_of(settings, shared=True) as runtime:
        for cache in caches:
            brought = await transfer.import_task(runtime, cache)
            counts = {"new": brought.new, "same": brought.same, "damaged": brought.damaged}
            rows.append({"agent_name": cache.agent, "task_id": cache.task_id, **counts})
        for file in saved:
            page = await transfer.import_saved(runtime, file, url=url, now=runtime.clock.now())
            outcome = {"outcome": page.outcome.value, "detail": page.detail, "evidence": page.is_evidence}
            rows.append({"file": file.name, "url": page.url, "page_id": page.id, **outcome})
    return rows


def _line(row: Mapping[str, Any]) -> str:
    if "file" in row:
        return f"{row['file']}  {row['outcome']}  {row['url']}"
    damaged = f", {row['damaged']} damaged" if row["damaged"] else ""
    return f"{row['agent_name']} {row['task_id']}  {row['new']} new, {row['same']} known already{damaged}"


def export(
    agent: AgentOption,
    to: Annotated[Path, typer.Option("--to", help="A folder, or a zip to be written.")],
    task: TaskOption = None,
    answers: AnswersOption = Path("answers"),
    as_json: JsonOption = False,
) -> None:
    """Write the captured pages that answers cite in the public layout, as a folder or a zip."""
    submissions = find_answers(answers, agent, task or ())
    from app.cache_transfer import zip_folder
    from app.precapture import cited_in

    settings = judging_settings()
    quiet_logging(settings)
    cited = cited_in(submissions)
    if to.suffix.lower() == ".zip":
        with tempfile.TemporaryDirectory(prefix="assay-export-") as folder:
            rows = asyncio.run(_export(settings, Path(folder), cited))
            zip_folder(Path(folder), to)
    else:
        rows = asyncio.run(_export(settings, to, cited))
    if as_json:
        print_json({"agent_name": agent, "to": str(to), "tasks": rows})
    else:
        for row in rows:
            for url in row["without"]:
                remarks().print(f"no evidence  {url}", markup=False, soft_wrap=True)
        for row in rows:
            output().print(f"{row['task_id']}  {row['pages']} of {row['cited']} pages", markup=False)
        output().print(f"written: {to}", markup=False, soft_wrap=True)
    if any(row["without"] for row in rows):
        raise typer.Exit(Exit.INCOMPLETE)


async def _export(
    settings: Settings, to: Path, cited: Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
) -> list[dict[str, Any]]:
    from app.cache_transfer import export_task

    rows: list[dict[str, Any]] = []
    async with runtime_of(settings, shared=True) as runtime:
        for (agent, task_id), by_url in cited.items():
            without = await export_task(runtime, to, agent, task_id, by_url)
            there = len(by_url) - len(without)
            rows.append({"task_id": task_id, "cited": len(by_url), "pages": there, "without": without})
    return rows


def reindex(
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="The page cache given to `assay evaluate`.  [default: the data folder]"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Read every stored body and compare its hash.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make again what captures are found by, from what is stored, and say what is missing or damaged."""
    settings = judging_settings()
    quiet_logging(settings)
    folders = [settings.data_dir] if cache is None else _evidence_folders(cache)
    found = {
        name: rebuilt
        for folder in folders
        for name, rebuilt in asyncio.run(_reindex(settings.model_copy(update={"data_dir": folder}), check=check))
    }
    if as_json:
        print_json({"indices": {name: rebuilt.as_json() for name, rebuilt in found.items()}})
    else:
        for name, rebuilt in found.items():
            _print_rebuilt(name, rebuilt)
    if not all(rebuilt.sound for rebuilt in found.values()):
        raise typer.Exit(Exit.INCOMPLETE)


def _evidence_folders(cache: Path) -> list[Path]:
    from app.public_cache import PublicCache

    folders = PublicCache(cache).evidence_folders()
    if not folders:
        raise WrongUsage(f"--cache {cache}: nothing was captured there")
    return folders


async def _reindex(settings: Settings, *, check: bool) -> list[tuple[str, Rebuilt]]:
    from app.reindex import rebuild
    from app.runtime import open_blobs
    from app.storage.captures import PostgresIndex
    from app.storage.database import open_database
    from cache.store import FolderIndex

    blobs = await asyncio.to_thread(open_blobs, settings)
    async with AsyncExitStack() as stack:
        captures = settings.data_dir / "captures"
        indices: list[tuple[str, Rebuildable]] = [(str(captures), await FolderIndex.open(captures))]
        if _has_database(settings):
            database = await stack.enter_async_context(open_database(settings))
            indices.append(("database", PostgresIndex(database)))
        return [(name, await rebuild(blobs, index, check=check)) for name, index in indices]


def _print_rebuilt(name: str, rebuilt: Rebuilt) -> None:
    console = output()
    console.print(
        f"{name}: {rebuilt.captures} captures, {rebuilt.rows} rows made or mended, {rebuilt.records} records written, "
        f"{rebuilt.drafts} half-written files removed, {rebuilt.unnamed} bodies that no capture names",
        markup=False,
        soft_wrap=True,
    )
    for what, bodies in (("missing", rebuilt.missing), ("corrupt", rebuilt.corrupt)):
        for sha256, needed_by in bodies.items():
            console.print(f"  {what}  {sha256}  of {', '.join(needed_by)}", markup=False, soft_wrap=True)
    if rebuilt.unreadable:
        console.print(f"  unreadable  {rebuilt.unreadable} records", markup=False)
