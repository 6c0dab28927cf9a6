"""Compilation and execution of task files. The code of a YAML file only calls the compiler of ``judges.yaml_tasks``.

One of the two places that catch all exceptions. Cancellation of the run and Ctrl-C pass through, as does
``JudgeError``, which is not the task file's fault (for example a failed extraction).
"""

from __future__ import annotations

import asyncio
import mmap
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import CodeType, ModuleType
from typing import Final

from judges.errors import JudgeBug, JudgeError, JudgeNotLoadable

YAML_SUFFIX: Final = ".yaml"
_YAML_CODE: Final = "from judges.yaml_tasks.compiler import yaml_judge\ntask = yaml_judge({source!r}, {path!r})\n"


@lru_cache(maxsize=512)
def compile_judge(source: bytes, path: str) -> CodeType:
    """Return the compiled code of a file, cached by bytes and path.

    Raises:
        SyntaxError, ValueError: the source is not valid Python.
    """
    code = _YAML_CODE.format(source=source, path=path) if path.endswith(YAML_SUFFIX) else source
    return compile(code, path, "exec", dont_inherit=True)


def run_as_module(code: CodeType, path: str, *, prefix: str) -> ModuleType:
    """Run the code of a file as a new module whose name starts with ``prefix``.

    The module is registered in ``sys.modules`` before it runs because dataclasses and pydantic look it up there. If the
    code raises, the module is removed and the exception propagates.
    """
    name = f"{prefix}{uuid.uuid4().hex}"
    spec = ModuleSpec(name, None, origin=path)
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - task files are trusted operator code
    except BaseException:
        del sys.modules[name]
        raise
    return module


MAX_TRACEBACK_CHARS = 20_000
_RESERVE_BYTES: Final = 16 * 1024 * 1024
_reserve: list[mmap.mmap] = []


def reserve_memory() -> None:
    """Reserve address space until judge code raises, so that a ``MemoryError`` can be handled in a limited process."""
    _reserve.append(mmap.mmap(-1, _RESERVE_BYTES, prot=0))


@contextmanager
def judge_code(subject: str) -> Iterator[None]:
    """Run judge code inside the block. ``subject`` starts the error message.

    Raises:
        JudgeBug: the code raised, tried to exit the process, or awaited a task that it had cancelled.
    """
    try:
        yield
    except (JudgeError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        while _reserve:
            _reserve.pop().close()
        raise JudgeBug(f"{subject}: {_line(error)}", traceback=_trace(error)) from error


def _is_being_cancelled() -> bool:
    """Return whether the current task was requested to end. Otherwise, judge code awaited a task that it cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@contextmanager
def judge_import(subject: str) -> Iterator[None]:
    """Like ``judge_code``, for importing a task file.

    Raises:
        JudgeNotLoadable: the file raised while it was imported.
    """
    try:
        with judge_code(subject):
            yield
    except JudgeNotLoadable:
        raise
    except JudgeBug as error:
        raise JudgeNotLoadable(str(error), traceback=error.traceback) from error


def _line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[0]


def _trace(error: BaseException) -> str:
    """Return the traceback as text, cut at the start if it is too long: the end shows the error."""
    return "".join(traceback.format_exception(error))[-MAX_TRACEBACK_CHARS:]
