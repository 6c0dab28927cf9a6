"""Loading a public judge script from its file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

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
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise FileNotFoundError(f"there is no judge script {file}")
    name = f"mind2web2_script_{uuid.uuid4().hex}"
    spec = importlib.util.spec_from_file_location(name, file) if file.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs: dataclasses and pydantic look up the module of the classes they find.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        return _checked(getattr(module, FUNCTION, None), file)
    except BaseException:
        del sys.modules[name]
        raise


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
