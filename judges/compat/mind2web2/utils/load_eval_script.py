"""Loading a public judge script from its file."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final, TypeAlias

from judges.source_code import compiled, run_as_module

__all__ = ["EvaluateAnswer", "load_eval_script"]

EvaluateAnswer: TypeAlias = Callable[..., Awaitable[Any]]

FUNCTION: Final = "evaluate_answer"
REQUIRED: Final = ("client", "answer", "agent_name", "answer_name", "cache", "semaphore", "logger")


def load_eval_script(path: str | Path) -> EvaluateAnswer:
    """Run a judge script as a module of its own and return its ``evaluate_answer``.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: it is no ``.py`` file.
        AttributeError: it defines no ``evaluate_answer``.
        TypeError: that is not ``async def``, or lacks arguments, which the message lists.
        Exception: whatever the file itself raises.
    """
    # Not resolved: download tools keep files under their hashes and put links with the real names beside them.
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise FileNotFoundError(f"there is no judge script {file}")
    if file.suffix != ".py":
        raise ImportError(f"{file} is no Python file")
    return script_in(compiled(file.read_bytes(), str(file)), file)


def script_in(code: CodeType, file: Path) -> EvaluateAnswer:
    """The same for the code of a file that is read already; raises as above."""
    return _checked(getattr(run_as_module(code, str(file), prefix="mind2web2_script_"), FUNCTION, None), file)


def _checked(function: Any, file: Path) -> EvaluateAnswer:
    if function is None:
        raise AttributeError(f"{file} defines no {FUNCTION}")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{FUNCTION} in {file} must be written with `async def`")
    parameters = inspect.signature(function).parameters.values()
    by_name = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    missing = sorted(set(REQUIRED) - by_name)
    if missing:
        raise TypeError(f"{FUNCTION} in {file} lacks the arguments {', '.join(missing)}")
    checked: EvaluateAnswer = function
    return checked
