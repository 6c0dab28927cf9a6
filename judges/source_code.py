"""A judge file's source, compiled once and run as often as it is wanted, each time as a module of its own."""

from __future__ import annotations

import sys
import uuid
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import CodeType, ModuleType


@lru_cache(maxsize=512)
def compiled(source: bytes, path: str) -> CodeType:
    """The code of a file. Equal bytes of one path are compiled once.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    return compile(source, path, "exec", dont_inherit=True)


def run_as_module(code: CodeType, path: str, *, prefix: str) -> ModuleType:
    """Run the code of a file under a fresh name that starts with ``prefix``.

    The module is registered before it runs: dataclasses and pydantic look it up. What it raises is raised, and then
    nothing of it stays.
    """
    name = f"{prefix}{uuid.uuid4().hex}"
    spec = ModuleSpec(name, None, origin=path)
    spec.has_location = True
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - this is what a judge file is for
    except BaseException:
        del sys.modules[name]
        raise
    return module
