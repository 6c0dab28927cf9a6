"""``assay bundle``: export, verify and replay evidence bundles."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from app.console import event_loop
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage, require_folder
from app.console.judging_options import AgentOption, TaskOption, judging_settings, quiet_logging
from app.console.runtime import run_in_database
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import bounds_text
from app.engine.public_cache import PublicCache
from app.engine.runtime import open_blobs
from app.features.bundles.archive import Manifest
from app.features.bundles.exporting import AgentResults, EvidenceStores, export_bundle, from_database, from_folder
from app.features.bundles.replay import replay as replay_bundle
from app.features.bundles.verification import CheckedResult, Report
from app.features.bundles.verification import verify as verify_bundle
from app.observability.logs import Redactor
from app.settings import Settings, load_settings
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from cache.capture_index import CaptureIndex, FolderIndex

BundleArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE.zip", help="Bundle file.")]
SHOWN_PROBLEMS = 20
UNKNOWN_AUTHOR = (
    "author not checked: who made this file could have invented results, replies and pages together. "
    "Compare its SHA-256 with the one that the author published."
)


def export(
    agent: AgentOption,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.zip", help="Bundle file to write.")],
    task: TaskOption = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="Read the results of `assay evaluate` from this folder (default: the database)"),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="With --results: page cache folder that was passed to `assay evaluate`."),
    ] = None,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Leave out pages and model requests; keep results, URLs and hashes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the newest result of each answer of an agent to a zip file. It includes all evidence."""
    if cache is not None and results is None:
        raise WrongUsage("--cache applies only to result folders; add --results")
    content, tasks = not no_content, task or []
    if results is None:
        exported = run_in_database(
            lambda settings, database: _export_from_service(settings, database, agent, tasks, out, content)
        )
    else:
        require_folder("--results", results)
        exported = _export_from_folder(results, cache, agent, tasks, out, content)
    if as_json:
        absent = [each.model_dump() for each in exported.absent]
        ids = [each.result_id for each in exported.results]
        written = {"bytes": exported.bytes, "files": len(exported.files), "results": ids}
        print_json({"file": str(out), **written, "absent": absent})
        return
    print_line(
        f"{out}: {counted(len(exported.results), 'result')}, {len(exported.files)} files, {exported.bytes} bytes"
    )
    _print_some([f"missing: {each.path}: {each.reason}" for each in exported.absent])


async def _export_from_service(
    settings: Settings, database: Database, agent: str, tasks: list[str], out: Path, content: bool
) -> Manifest:
    evaluated = await from_database(database, agent, tasks)
    return await _write(settings, PostgresCaptureIndex(database), evaluated, out, content)


def _export_from_folder(
    results: Path, cache: Path | None, agent: str, tasks: list[str], out: Path, content: bool
) -> Manifest:
    settings = judging_settings(evidence=None if cache is None else PublicCache(cache).evidence_folder(agent))
    quiet_logging(settings)

    async def run() -> Manifest:
        captures = await FolderIndex.open(settings.data_dir / "captures")
        return await _write(settings, captures, await from_folder(results, agent, tasks), out, content)

    return event_loop.run(run())


async def _write(
    settings: Settings, captures: CaptureIndex, results: AgentResults, out: Path, content: bool
) -> Manifest:
    blobs = await asyncio.to_thread(open_blobs, settings)
    stores = EvidenceStores(blobs=blobs, captures=captures, redactor=Redactor(settings.secrets))
    return await export_bundle(stores, results, out, content=content)


def verify(file: BundleArgument, as_json: JsonOption = False) -> None:
    """Check every file, and recompute verdicts and scores. Uses recorded replies and pages, and runs no task file."""
    _report(file, verify_bundle(file), as_json=as_json)


def replay(file: BundleArgument, as_json: JsonOption = False) -> None:
    """Verify a bundle, then judge its answers again. Uses its pages and replies, and needs no network and no API key.

    This executes task files of the bundle's author, in confined processes.
    """
    settings = load_settings()
    quiet_logging(settings)
    _report(file, event_loop.run(replay_bundle(file, settings)), as_json=as_json)


def _report(file: Path, report: Report, *, as_json: bool) -> None:
    """Print a report. Exit with 1 if the bundle is not valid, and with 3 if something could not be compared."""
    if as_json:
        print_json(
            {
                "file": str(file),
                "valid": report.valid,
                "complete": report.is_complete,
                "files": report.files,
                "bytes": report.bytes,
                "problems": list(report.problems),
                "results": [result.to_json() for result in report.results],
            }
        )
    else:
        _print_report(report)
    if not report.valid:
        raise typer.Exit(Exit.FAILED)
    if not report.is_complete:
        raise typer.Exit(Exit.INCOMPLETE)


def _print_report(report: Report) -> None:
    for result in report.results:
        stdout_console().print_line(_line(result))
    _print_some(list(report.problems))
    left_out = [
        f"not compared: {text}"
        for result in report.results
        for text in (*result.not_compared, result.unchecked)
        if text
    ]
    _print_some(list(dict.fromkeys(left_out)))
    if not report.valid:
        stderr_console().print_line(f"not valid: {report.first_problem}")
        return
    word = "valid" if report.is_complete else "valid as far as it can be compared"
    stderr_console().print_line(
        f"{word}: {counted(len(report.results), 'result')}, {report.files} files, {report.bytes} bytes"
    )
    stderr_console().print_line(UNKNOWN_AUTHOR)


def _line(result: CheckedResult) -> str:
    word = "different" if result.differences else "equal" if result.unchecked is None else "unchecked"
    overridden = "" if result.with_overrides is None else f", {_score_text(result.with_overrides)} with overrides"
    return f"{word}  {result.task_id} {result.answer_name}  score {_score_text(result.figures)}{overridden}"


def _print_some(lines: list[str]) -> None:
    for line in lines[:SHOWN_PROBLEMS]:
        stderr_console().print_line(line)
    if len(lines) > SHOWN_PROBLEMS:
        stderr_console().print(f"and {len(lines) - SHOWN_PROBLEMS} more; --json lists all", markup=False)


def _score_text(figures: Mapping[str, Any]) -> str:
    """Return the score with its bounds. Results of the public toolkit have only ``final_score``."""
    score, final = figures.get("score"), figures.get("final_score")
    if score is None and isinstance(final, float | int):
        score = {"low": final, "high": final}
    return bounds_text(score)
