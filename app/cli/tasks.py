"""``assay tasks show`` and ``assay tasks new``: tasks and the schema of their files, and a file for a new task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.console import event_loop
from app.console.answer_files import check_name
from app.console.connection import JsonOption
from app.console.errors import Exit, WrongUsage, reject_given
from app.console.judging_options import JudgesOption, TaskFolderOption, judging_settings, no_judge, task_folder
from app.console.streams import print_json, stderr_console, stdout_console
from app.engine.judge_files import load_catalogue
from app.engine.judge_trials import LintReport, lint_judges
from app.settings import load_settings
from judges.loader import JudgeCatalogue
from judges.registry import Judge
from judges.yaml_tasks.model import task_schema


def show(
    context: typer.Context,
    task_id: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Id of a task (default: list the tasks).")
    ] = None,
    judges: JudgesOption = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Print the JSON Schema of task files in YAML, for editors and other programs."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List tasks, or show one: description, task file and version.

    The list shows lint findings of rubrics, and task files that do not load.
    """
    if schema:
        if task_id is not None:
            raise WrongUsage("--schema cannot be used with a task: all tasks have the same schema")
        reject_given(context, "cannot be used with --schema", "--judges")
        print_json(task_schema())
        return
    catalogue = event_loop.run(load_catalogue(judging_settings(judges=judges)))
    if task_id is None:
        _list(catalogue, as_json=as_json)
    else:
        _show(catalogue, task_id, as_json=as_json)


def _list(catalogue: JudgeCatalogue, *, as_json: bool) -> None:
    lint = event_loop.run(lint_judges(catalogue.judges.values()))
    if as_json:
        listed = [_judge_json(catalogue.judges[task_id], lint.get(task_id)) for task_id in sorted(catalogue.judges)]
        print_json({"tasks": listed, "broken": dict(sorted(catalogue.broken.items()))})
    else:
        _print(catalogue, lint)
    if catalogue.broken:
        raise typer.Exit(Exit.FAILED)


def _show(catalogue: JudgeCatalogue, task_id: str, *, as_json: bool) -> None:
    console = stdout_console()
    if task_id in catalogue.broken:
        console.print_line(catalogue.broken[task_id])
        raise typer.Exit(Exit.FAILED)
    if task_id not in catalogue.judges:
        raise no_judge(task_id, catalogue.judges)
    judge = catalogue.judges[task_id]
    lint = event_loop.run(lint_judges([judge])).get(task_id)
    if as_json:
        print_json(_judge_json(judge, lint))
        return
    console.print(f"[bold]{judge.task}[/]  {judge.kind.value}, version {judge.version}")
    console.print_line(f"{judge.path}  sha256 {(judge.sha256 or '')[:12]}")
    for paragraph in judge.description.strip().split("\n\n"):
        console.print(f"\n{' '.join(paragraph.split())}", markup=False)
    for line in [] if lint is None else lint.lines():
        console.print_line(f"\n{line}")


def new(
    task_id: Annotated[str, typer.Argument(help="Id of the new task, and name of its file.")],
    out: TaskFolderOption = None,
    python: Annotated[bool, typer.Option("--python", help="Write the task in Python instead of YAML.")] = False,
) -> None:
    """Create a task file and its test from a working example."""
    folder = task_folder(out)
    check_name(task_id, "task id")
    name = re.sub(r"\W", "_", task_id).lower()
    names = _python_files(folder, task_id, name) if python else _yaml_files(folder, task_id)
    for path in (*names, folder / f"{task_id}.{'yaml' if python else 'py'}"):
        if path.exists():
            raise WrongUsage(f"{path} already exists", hint="Choose another id, or another folder with --out.")
    values = {"task_id": task_id, "function": name if name.isidentifier() and not iskeyword(name) else f"judge_{name}"}
    for path, template in names.items():
        text = (files("app.cli") / "templates" / template).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(values), encoding="utf-8")
    created = "\n         ".join(map(str, names))
    paths = list(names)
    judges = "" if folder in load_settings().judges else f" --judges {folder}"  # the folder of the settings is read
    test = (
        f"python {paths[1]}" if python else f"assay tasks test {task_id}{judges} --answer {paths[1]} --pages {paths[2]}"
    )
    stderr_console().print_line(
        f"created: {created}\ntest it: {test}\nuse it:  assay evaluate --agent AGENT --task {task_id}{judges}"
    )


def _yaml_files(folder: Path, task_id: str) -> dict[Path, str]:
    return {
        folder / f"{task_id}.yaml": "task.yaml.txt",
        folder / "tests" / f"{task_id}.answer.md": "answer.md.txt",
        folder / "tests" / f"{task_id}.pages.json": "pages.json.txt",
    }


def _python_files(folder: Path, task_id: str, name: str) -> dict[Path, str]:
    return {
        folder / f"{task_id}.py": "judge.py.txt",
        folder / "tests" / f"test_{name}.py": "judge_test.py.txt",
    }


def _judge_json(judge: Judge, lint: LintReport | None) -> dict[str, Any]:
    """Return one task as JSON. ``lint`` is a list of findings, or null if the rubric was not checked."""
    return {
        "id": judge.task,
        "kind": judge.kind.value,
        "version": judge.version,
        "sha256": judge.sha256,
        "path": None if judge.path is None else str(judge.path),
        "description": judge.description,
        "lint": None if lint is None else lint.findings,
        "lint_error": None if lint is None else lint.error,
    }


def _print(catalogue: JudgeCatalogue, lint: Mapping[str, LintReport]) -> None:
    """Print one line per task (cut at the terminal width), its lint findings, and problems of broken task files."""
    console = stdout_console()
    width = max(map(len, catalogue.judges), default=0)
    for task_id, judge in sorted(catalogue.judges.items()):
        line = f"{task_id:<{width}}  {judge.kind.value:<9}  v{judge.version:<3}  {' '.join(judge.description.split())}"
        console.print(line, markup=False, no_wrap=True, overflow="ellipsis")
        for finding in lint[task_id].lines() if task_id in lint else ():
            console.print_line(f"  {finding}")
    for problem in sorted(catalogue.broken.values()):
        for line in problem.partition("\nTraceback ")[0].splitlines():
            stderr_console().print(f"[bold red]broken:[/] {escape(line)}", soft_wrap=True)
