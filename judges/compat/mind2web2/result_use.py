"""Whether a judge script uses the result of a call to ``verify``.

After a fault, ``verify`` returns False, because a bool has no third state. What the script then derives from it is
unknown, too. Most scripts ignore the result, because the verdict is in the node.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from types import FrameType
from typing import Final, TypeAlias

_OWN_PACKAGES: Final = ("mind2web2", "judges")
_Place: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""First and last line, first and last column, as of ``CodeType.co_positions``."""


def is_result_used() -> bool:
    """Return whether the judge script uses the result of the method of this package that it is awaiting.

    False for tasks, as created by ``asyncio.gather``: the code that uses their results is not on the stack.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN_PACKAGES:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_flags & inspect.CO_COROUTINE:
        statement = _statements(frame.f_code.co_filename, "".join(_lines(frame))).get(_place(frame))
        if statement is not ast.Return:
            return statement not in (ast.Expr, ast.Assert)
        frame = frame.f_back
    return False


def _lines(frame: FrameType) -> list[str]:
    return linecache.getlines(frame.f_code.co_filename, frame.f_globals)


def _place(frame: FrameType) -> _Place | None:
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)


@functools.lru_cache(maxsize=8)
def _statements(filename: str, source: str) -> Mapping[_Place | None, type[ast.AST]]:
    """Map the place of each ``await`` that is a whole statement, a returned value, or in an assertion, to that kind."""
    found: dict[_Place | None, type[ast.AST]] = {}
    try:
        tree = ast.parse(source, filename)
    except SyntaxError:  # the file has changed
        return found
    for node in ast.walk(tree):
        values: Iterable[ast.AST | None] = ()
        if isinstance(node, ast.Expr | ast.Return):
            values = (node.value,)
        elif isinstance(node, ast.Assert):
            values = ast.walk(node.test)
        for value in values:
            if isinstance(value, ast.Await):
                found[value.lineno, value.end_lineno, value.col_offset, value.end_col_offset] = type(node)
    return found
