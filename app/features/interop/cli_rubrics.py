"""``assay tasks import``: convert rubrics of other tools to task files, and report what has no equivalent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.judging_options import TaskFolderOption, task_folder
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.console.tables import plain_table
from app.features.interop.rubrics import RubricFormat

if TYPE_CHECKING:
    from app.features.interop.rubrics.draft import ImportedTask

_MAX_TABLE_ROWS = 200


def import_(
    format: Annotated[RubricFormat, typer.Argument(help="Format of the file.")],
    file: Annotated[Path, typer.Argument(help="Rubric file: .json, .jsonl, .toml or .yaml.")],
    out: TaskFolderOption = None,
    rows: Annotated[
        Path | None, typer.Option(help="Data set for openai: the values of `item`, as JSON lines or a JSON list.")
    ] = None,
    question: Annotated[str, typer.Option(help="Question of tasks for which the file contains none.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files that differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Import rubrics of other tools as task files. List what has no equivalent. If the file is invalid, write none.

    Nothing in the file is executed or fetched.
    """
    from app.features.interop.rubrics.conversion import import_rubrics
    from app.features.interop.rubrics.sources import Malformed

    folder = task_folder(out)
    if rows is not None and format is not RubricFormat.OPENAI:
        raise WrongUsage("--rows is only for openai", hint="Leave it out.")
    try:
        data_set = None if rows is None else (_read(rows), rows.name)
        tasks = import_rubrics(format, _read(file), file.name, rows=data_set, question=question.strip())
    except Malformed as error:
        raise WrongUsage(f"{file}: invalid {format.value} file", hint=str(error)) from error
    paths = {task.id: folder / f"{task.id}.yaml" for task in tasks if task.text is not None}
    written = _write({paths[task.id]: task.text for task in tasks if task.text is not None}, overwrite=overwrite)
    if as_json:
        listed = [_task_json(task, paths.get(task.id)) for task in tasks]
        print_json({"written": written, "unchanged": len(paths) - written, "tasks": listed})
    else:
        _print(tasks)
        leaves = sum(task.leaves for task in tasks)
        message = f"{written} written, {len(paths) - written} unchanged, {leaves} leaves: {folder}"
        print_line(message)
    if not paths:
        raise typer.Exit(Exit.FAILED)


def _read(path: Path) -> bytes:
    from app.features.interop.rubrics.sources import MAX_BYTES

    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"Cannot read {path}: {error.strerror}") from error


def _write(files: dict[Path, str], *, overwrite: bool) -> int:
    """Write the files that differ, and return their number. Nothing is written unless all of them can be."""
    from cache.atomic_files import write_atomic

    changed = {
        path: text.encode()
        for path, text in files.items()
        if not (path.is_file() and path.read_bytes() == text.encode())
    }
    conflicting = [path for path in changed if path.exists()]
    if conflicting and not overwrite:
        listed = ", ".join(map(str, conflicting[:5]))
        hint = f"Use --overwrite to replace {counted(len(conflicting), 'file')}, or another folder with --out."
        raise WrongUsage(f"existing files have other contents: {listed}{', ...' * (len(conflicting) > 5)}", hint=hint)
    for path, content in changed.items():
        write_atomic(path, content)
    return len(changed)


def _task_json(task: ImportedTask, path: Path | None) -> dict[str, Any]:
    differences = [
        {
            "where": each.where,
            "count": each.count,
            "what": each.what,
            "result": "left_out" if each.left_out else "changed",
            "why": each.why,
        }
        for each in task.differences
    ]
    return {
        "id": task.id,
        "path": None if path is None else str(path),
        "leaves": task.leaves,
        "differences": differences,
    }


def _print(tasks: Sequence[ImportedTask]) -> None:
    from rich.text import Text

    differences = [(task, each) for task in tasks for each in task.differences]
    if not differences:
        return
    table = plain_table("task", "where", "what", "outcome", "why", title="No exact equivalent")
    for task, each in differences[:_MAX_TABLE_ROWS]:
        where = each.where if each.count == 1 else f"{each.where} and {each.count - 1} more"
        cells = (task.id, where, each.what, "left out" if each.left_out else "changed", each.why)
        table.add_row(*(Text(cell) for cell in cells))
    stdout_console().print(table)
    if len(differences) > _MAX_TABLE_ROWS:
        stderr_console().print(f"{len(differences) - _MAX_TABLE_ROWS} more differences; --json lists all of them")
