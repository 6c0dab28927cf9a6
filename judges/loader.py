"""From folders of judge files to a catalogue: file name = task id.

A native file is imported, because only then is known what it declares. A public judge script is only
parsed: running it is the compat host's business. A file that is neither, or that cannot be read, is
listed as broken with the reason, so that it is seen before anybody submits an answer to it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

from judges.errors import JudgeNotLoadable
from judges.foreign import judge_import
from judges.registry import MARK, TASK_PATTERN, Judge, JudgeKind

SCRIPT_FUNCTION = "evaluate_answer"
SCRIPT_ARGUMENTS = ("client", "answer", "agent_name", "answer_name", "cache", "semaphore", "logger")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCatalogue:
    """What was found: ``judges`` by task id, and ``broken`` files by task id with what is wrong with them."""

    judges: dict[str, Judge] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


def load_judges(folders: Iterable[Path]) -> JudgeCatalogue:
    """Load every judge file directly inside ``folders``; of two files for one task the earlier folder's counts.

    Files whose name starts with ``_`` are passed over. A broken file is not replaced by a sound one of a
    later folder: whoever put it first would be judged by something else than he thinks.
    """
    catalogue = JudgeCatalogue()
    for folder in folders:
        for path in sorted(folder.expanduser().glob("*.py")):
            if path.name.startswith("_") or path.stem in catalogue.judges or path.stem in catalogue.broken:
                continue
            try:
                catalogue.judges[path.stem] = load_judge(path)
            except JudgeNotLoadable as error:
                catalogue.broken[path.stem] = f"{path}: {error}\n{error.traceback}".rstrip()
    return catalogue


def load_judge(path: Path) -> Judge:
    """Read one judge file, native or public.

    Raises:
        JudgeNotLoadable: it cannot be read, parsed or imported, or defines no judge of the task it is named after.
    """
    if not TASK_PATTERN.fullmatch(path.stem):
        raise JudgeNotLoadable("the file name is the task id: letters, digits and . _ - only, at most 100")
    source = _read(path)
    try:
        tree = ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise JudgeNotLoadable(f"cannot be parsed: {error}") from error
    sha256 = hashlib.sha256(source).hexdigest()
    if _is_script(tree):
        description = ast.get_docstring(tree) or ""
        return Judge(
            task=path.stem, description=description, kind=JudgeKind.MIND2WEB2, path=path.resolve(), sha256=sha256
        )
    return replace(_declared_in(_import(path), path.stem), path=path.resolve(), sha256=sha256)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise JudgeNotLoadable(f"cannot be read: {error.strerror}") from error


def _is_script(tree: ast.Module) -> bool:
    """Whether the file binds ``evaluate_answer`` at its top level, checked as far as can be seen without running it."""
    found = False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == SCRIPT_FUNCTION:
            _check_script(node)
            found = True
        elif isinstance(node, ast.ImportFrom):
            found = found or any((alias.asname or alias.name) == SCRIPT_FUNCTION for alias in node.names)
        elif isinstance(node, ast.Assign):
            found = found or any(isinstance(to, ast.Name) and to.id == SCRIPT_FUNCTION for to in node.targets)
    return found


def _check_script(script: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if isinstance(script, ast.FunctionDef):
        raise JudgeNotLoadable(f"{SCRIPT_FUNCTION} must be written with `async def`")
    named = {argument.arg for argument in (*script.args.posonlyargs, *script.args.args, *script.args.kwonlyargs)}
    missing = sorted(set(SCRIPT_ARGUMENTS) - named)
    if missing:
        raise JudgeNotLoadable(f"{SCRIPT_FUNCTION} lacks the arguments {', '.join(missing)}")


def _import(path: Path) -> ModuleType:
    """Import a file under a name of its own, registered before it runs: dataclasses and pydantic look it up."""
    name = f"judge_{uuid.uuid4().hex}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise JudgeNotLoadable("is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with judge_import("importing it failed"):
            spec.loader.exec_module(module)
    except JudgeNotLoadable:
        del sys.modules[name]
        raise
    return module


def _declared_in(module: ModuleType, task: str) -> Judge:
    """The judge of ``task`` that a module declares."""
    functions = {id(value): value for value in vars(module).values() if inspect.iscoroutinefunction(value)}
    marks = [mark for value in functions.values() if isinstance(mark := getattr(value, MARK, None), Judge)]
    matching = [judge for judge in marks if judge.task == task]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise JudgeNotLoadable(f"declares {len(matching)} judges of {task!r}")
    if marks:
        others = ", ".join(repr(judge.task) for judge in marks)
        raise JudgeNotLoadable(f"declares a judge of {others}, but the file name is the task id")
    raise JudgeNotLoadable(f"defines neither a @judge coroutine nor `async def {SCRIPT_FUNCTION}`")
