"""Loader for folders of task files. The file name is the task id.

A native Python file is imported, because its rubric is known only then. A YAML file is parsed and checked; it contains
no code. A public task script is only parsed; the mind2web2 host runs it. A file that is none of these, or that cannot
be read, is listed as broken with the reason, so that operators see the problem before the first submission.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from types import CodeType, ModuleType

from judges.errors import JudgeNotLoadable
from judges.registry import MARK, TASK_PATTERN, Judge, JudgeKind
from judges.source_code import YAML_SUFFIX, compile_judge, judge_import, run_as_module

SCRIPT_FUNCTION = "evaluate_answer"
JUDGE_SUFFIXES = (".py", YAML_SUFFIX)
_MISSPELT = (".yml",)
_parse_lock = Lock()
"""Python 3.11 shares the AST recursion depth between threads, so concurrent parsing can fail."""
SCRIPT_ARGUMENTS = ("client", "answer", "agent_name", "answer_name", "cache", "semaphore", "logger")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCatalogue:
    """Loaded ``judges`` by task id, and the reasons of ``broken`` files by task id."""

    judges: dict[str, Judge] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


def load_judges(
    folders: Iterable[Path], *, importing: bool = True, tasks: Collection[str] | None = None
) -> JudgeCatalogue:
    """Load every task file directly inside ``folders``. If a task occurs twice, the earlier folder takes precedence.

    ``tasks`` limits this to the files of these tasks.

    Files whose name starts with ``_`` are ignored. A broken file also takes precedence: replacing it with a file of a
    later folder would silently run another judge. For ``importing``, see ``load_judge``.
    """
    catalogue = JudgeCatalogue()
    for folder in folders:
        for task, paths in _files_by_task(folder).items():
            if task in catalogue.judges or task in catalogue.broken or (tasks is not None and task not in tasks):
                continue
            try:
                if len(paths) > 1:
                    raise JudgeNotLoadable(f"{paths[1].name} defines the same task; remove one of the two files")
                catalogue.judges[task] = load_judge(paths[0], importing=importing)
            except JudgeNotLoadable as error:
                place = "" if error.names_lines else f"{paths[0]}: "
                catalogue.broken[task] = f"{place}{error}\n{error.traceback}".rstrip()
    return catalogue


def judge_files(folder: Path) -> list[Path]:
    """Return the paths of the task files directly inside a folder, sorted, with those of a misspelt suffix. Blocks."""
    return [
        path
        for path in sorted(folder.expanduser().glob("*"))
        if path.suffix.lower() in (*JUDGE_SUFFIXES, *_MISSPELT) and not path.name.startswith(("_", "."))
    ]


def _files_by_task(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in judge_files(folder):
        files.setdefault(path.stem, []).append(path)
    return files


def load_judge(path: Path, *, importing: bool = True) -> Judge:
    """Load one task file, native or public.

    With ``importing=False``, a native Python file is not executed, so its description, version and coroutine stay
    unknown.

    Raises:
        InvalidTask: it is a YAML file that breaks a rule of the format.
        JudgeNotLoadable: it cannot be read, parsed or imported, or defines no judge of the task in its file name.
    """
    if not TASK_PATTERN.fullmatch(path.stem):
        raise JudgeNotLoadable(
            "the file name is the task id: use letters, digits, '.', '_' or '-' (max 100 characters)"
        )
    if path.suffix not in JUDGE_SUFFIXES:
        suffix = path.suffix.lower()
        raise JudgeNotLoadable(f"rename it to {path.stem}{YAML_SUFFIX if suffix in _MISSPELT else suffix}")
    source = _read(path)
    if path.suffix == YAML_SUFFIX:
        from judges.yaml_tasks.compiler import yaml_judge  # 0.04 s, unneeded by scripts

        loaded: Judge = getattr(yaml_judge(source, str(path)), MARK)
        return replace(loaded, path=path.resolve(), sha256=hashlib.sha256(source).hexdigest(), source=source)
    try:
        with _parse_lock:
            tree = ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise JudgeNotLoadable(f"cannot be parsed: {error}") from error
    file = Judge(task=path.stem, path=path.resolve(), sha256=hashlib.sha256(source).hexdigest(), source=source)
    if is_script(tree):
        return replace(file, description=ast.get_docstring(tree) or "", kind=JudgeKind.MIND2WEB2)
    if not importing:
        return file
    declared = run_native_file(compile_judge(source, str(file.path)), str(file.path), path.stem)
    return replace(declared, path=file.path, sha256=file.sha256, source=source)


def run_native_file(code: CodeType, path: str, task: str) -> Judge:
    """Run the code of a native file and return the judge of ``task`` that it declares.

    Raises:
        JudgeNotLoadable: it raised, or declares no such judge.
    """
    with judge_import("import failed"):
        module = run_as_module(code, path, prefix="judge_")
    return _declared_in(module, task)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise JudgeNotLoadable(f"cannot be read: {error.strerror}") from error


def is_script(tree: ast.Module) -> bool:
    """Return whether the file defines ``evaluate_answer`` at its top level, as far as the syntax tree shows."""
    has_entry_point = False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == SCRIPT_FUNCTION:
            _check_script(node)
            has_entry_point = True
        elif isinstance(node, ast.ImportFrom):
            has_entry_point = has_entry_point or any(
                (alias.asname or alias.name) == SCRIPT_FUNCTION for alias in node.names
            )
        elif isinstance(node, ast.Assign):
            has_entry_point = has_entry_point or any(
                isinstance(target, ast.Name) and target.id == SCRIPT_FUNCTION for target in node.targets
            )
    return has_entry_point


def _check_script(script: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if isinstance(script, ast.FunctionDef):
        raise JudgeNotLoadable(f"{SCRIPT_FUNCTION} must be defined with `async def`")
    parameter_names = {
        argument.arg for argument in (*script.args.posonlyargs, *script.args.args, *script.args.kwonlyargs)
    }
    missing = sorted(set(SCRIPT_ARGUMENTS) - parameter_names)
    if missing:
        raise JudgeNotLoadable(f"{SCRIPT_FUNCTION} is missing the parameters {', '.join(missing)}")


def _declared_in(module: ModuleType, task: str) -> Judge:
    """Return the judge of ``task`` that a module declares."""
    functions = {id(value): value for value in vars(module).values() if inspect.iscoroutinefunction(value)}
    declared = [judge for value in functions.values() if isinstance(judge := getattr(value, MARK, None), Judge)]
    matching = [judge for judge in declared if judge.task == task]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise JudgeNotLoadable(f"declares {len(matching)} judges for {task!r}")
    if declared:
        others = ", ".join(repr(judge.task) for judge in declared)
        raise JudgeNotLoadable(f"declares a judge for {others}, but the file name must be the task id")
    raise JudgeNotLoadable(f"defines neither a @judge coroutine nor `async def {SCRIPT_FUNCTION}`")
