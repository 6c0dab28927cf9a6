"""Loader for public task scripts."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

from judges.loader import SCRIPT_ARGUMENTS, SCRIPT_FUNCTION
from judges.source_code import compile_judge, run_as_module

__all__ = ["EvaluateAnswer", "load_eval_script"]

EvaluateAnswer: TypeAlias = Callable[..., Awaitable[Any]]


def load_eval_script(path: str | Path) -> EvaluateAnswer:
    """Run a task script as a new module and return its ``evaluate_answer``.

    Raises:
        FileNotFoundError: the file does not exist.
        ImportError: it is not a ``.py`` file.
        AttributeError: it does not define ``evaluate_answer``.
        TypeError: the function is not ``async def``, or is missing parameters, which the message lists.
        Exception: anything that the script itself raises.
    """
    # Symbolic links are not resolved: download tools store files under hashes, with links that have the real names.
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise FileNotFoundError(f"task script not found: {file}")
    if file.suffix != ".py":
        raise ImportError(f"{file} is not a Python file")
    return script_in(compile_judge(file.read_bytes(), str(file)), file)


def script_in(code: CodeType, file: Path) -> EvaluateAnswer:
    """Like ``load_eval_script``, for code that is compiled already. Same errors."""
    return _checked(getattr(run_as_module(code, str(file), prefix="mind2web2_script_"), SCRIPT_FUNCTION, None), file)


def _checked(function: Any, file: Path) -> EvaluateAnswer:
    if function is None:
        raise AttributeError(f"{file} does not define {SCRIPT_FUNCTION}")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{SCRIPT_FUNCTION} in {file} must be defined with `async def`")
    parameters = inspect.signature(function).parameters.values()
    by_name = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    missing = sorted(set(SCRIPT_ARGUMENTS) - by_name)
    if missing:
        raise TypeError(f"{SCRIPT_FUNCTION} in {file} is missing the parameters {', '.join(missing)}")
    checked: EvaluateAnswer = function
    return checked
