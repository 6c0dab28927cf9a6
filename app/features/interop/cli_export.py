"""``assay results export``: write results in formats of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.console.answer_files import check_name
from app.console.connection import URL, UrlOption, connect
from app.console.errors import WrongUsage, require_folder
from app.console.judging_options import AgentOption, TaskOption
from app.console.streams import counted, stderr_console, suggestion
from app.features.interop.exported_results import ExportedResult, NotExportable, from_folder, from_server, write_layout
from app.features.interop.tables import leaf_table, result_table, write_csv, write_json_lines, write_parquet


class Format(StrEnum):
    """Output format."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    MIND2WEB2 = "mind2web2"


class Rows(StrEnum):
    """Unit of a row."""

    RESULTS = "results"
    LEAVES = "leaves"


def export(
    agent: AgentOption,
    out: Annotated[Path, typer.Option(help="File to write. For mind2web2: folder.")],
    format: Annotated[
        Format, typer.Option(help="Output format. mind2web2: result folders of the public toolkit.")
    ] = Format.CSV,
    rows: Annotated[
        Rows | None,
        typer.Option(help="One row per result or per leaf. jsonl without this option writes whole results."),
    ] = None,
    task: TaskOption = None,
    run: Annotated[str | None, typer.Option(help="Only this run of the agent.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--results", help="Read result files of `assay evaluate` from this folder instead of a server."),
    ] = None,
    url: UrlOption = URL,
) -> None:
    """Export the newest result of every answer of an agent."""
    if rows is not None and format is Format.MIND2WEB2:
        raise WrongUsage(
            f"--rows {rows.value} cannot be used with --format mind2web2, only with csv, parquet and jsonl"
        )
    if run is not None and folder is not None:
        raise WrongUsage("--run cannot be used with --results: result folders have no runs")

    selected = _read_results(agent, task or (), run, folder, url)
    try:
        written = _write(selected, format, rows, out)
    except NotExportable as error:
        raise WrongUsage(str(error)) from error
    except OSError as error:
        raise WrongUsage(f"Cannot write --out {out}: {error.strerror}") from error
    stderr_console().print_line(f"{written}: {out}")


def _read_results(
    agent: str, tasks: Sequence[str], run: str | None, folder: Path | None, url: str
) -> list[ExportedResult]:
    check_name(agent, "agent")
    if folder is None:
        with connect(url) as client:
            selected = from_server(client, agent, tasks, run=run)
        source = url
    else:
        require_folder("--results", folder)
        selected, source = from_folder(folder, agent, tasks), str(folder)
    if not selected:
        hint = None
        if folder is not None and not (folder / agent).is_dir():
            hint = suggestion(agent, [path.name for path in folder.iterdir() if path.is_dir()])
        raise WrongUsage(f"{source} has no matching result of agent {agent!r}", hint=hint)
    return selected


def _write(selected: Sequence[ExportedResult], format: Format, rows: Rows | None, out: Path) -> str:
    """Write the results and return a summary of the output."""
    if format is Format.MIND2WEB2:
        return counted(write_layout(out, selected), "result")
    if format is Format.JSONL and rows is None:
        write_json_lines(out, (exported.result for exported in selected))
        return counted(len(selected), "result")
    table = leaf_table(selected) if rows is Rows.LEAVES else result_table(selected)
    if format is Format.CSV:
        write_csv(out, table)
    elif format is Format.PARQUET:
        write_parquet(out, table)
    else:
        write_json_lines(out, table.objects())
    return counted(len(table.rows), "row")
