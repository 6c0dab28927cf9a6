"""Compilation and execution of judge files."""

from __future__ import annotations

import sys
import uuid
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import CodeType, ModuleType


@lru_cache(maxsize=512)
def compile_judge(source: bytes, path: str) -> CodeType:
    """Return the compiled code of a file, cached by bytes and path.

    Raises:
        SyntaxError, ValueError: the source is not valid Python.
    """
    return compile(source, path, "exec", dont_inherit=True)


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
        exec(code, module.__dict__)  # noqa: S102 - judge files are trusted operator code
    except BaseException:
        del sys.modules[name]
        raise
    return module
