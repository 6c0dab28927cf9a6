"""Whether a judge script uses the result of a call to ``verify``.

After a fault, ``verify`` returns False, because a bool has no third state. What the script then derives from it is
unknown, too. Most scripts ignore the result, because the verdict is in the node.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import linecache
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CoroutineType, FrameType
from typing import Final, TypeAlias

_OWN_PACKAGES: Final = ("mind2web2", "judges")
_OWN_FOLDER: Final = str(Path(__file__).parent)
_Place: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""First and last line, first and last column, as of ``CodeType.co_positions``."""


def remember_origins() -> None:
    """Let the coroutines of this thread remember the line that created them, which ``is_result_used`` reads."""
    sys.set_coroutine_origin_tracking_depth(max(1, sys.get_coroutine_origin_tracking_depth()))


def is_result_used() -> bool:
    """Return whether the judge script may use the result of the method of this package that it is awaiting.

    The result of a task (``asyncio.gather``) counts as used unless the function that created its coroutine only waits
    for it.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN_PACKAGES:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_flags & inspect.CO_COROUTINE:
        statement = _awaits(_source(frame.f_code.co_filename, frame)).get(_place(frame))
        if statement is not ast.Return:
            return statement not in (ast.Expr, ast.Assert)
        frame = frame.f_back
    task = asyncio.current_task()
    coroutine = None if task is None else task.get_coro()
    origin = coroutine.cr_origin if isinstance(coroutine, CoroutineType) else None
    if not origin or origin[0][0].startswith(_OWN_FOLDER):
        return False
    filename, line, _ = origin[0]
    return _is_task_used(_parsed(_source(filename)), line)


def _source(filename: str, frame: FrameType | None = None) -> str:
    return "".join(linecache.getlines(filename, None if frame is None else frame.f_globals))


def _place(frame: FrameType) -> _Place | None:
    return next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)


@functools.lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # the file has changed
        return ast.Module([], [])


@functools.lru_cache(maxsize=8)
def _awaits(source: str) -> dict[_Place | None, type[ast.AST]]:
    """Map the place of each ``await`` that is a whole statement, a returned value, or in an assertion, to that kind."""
    found: dict[_Place | None, type[ast.AST]] = {}
    for node in ast.walk(_parsed(source)):
        values = list(ast.walk(node.test)) if isinstance(node, ast.Assert) else []
        if isinstance(node, ast.Expr | ast.Return) and node.value is not None:
            values = [node.value]
        for value in values:
            if isinstance(value, ast.Await):
                found[value.lineno, value.end_lineno, value.col_offset, value.end_col_offset] = type(node)
    return found


def _is_task_used(script: ast.Module, line: int) -> bool:
    """Return whether a script may use the result of a task whose coroutine this line creates.

    It does not if a statement only waits for it or only starts it, or if it is in a variable (usually a list) that the
    function uses only to wait for it.
    """
    statements = (node for node in ast.walk(script) if isinstance(node, ast.stmt))
    around = [each for each in statements if each.lineno <= line <= (each.end_lineno or 0)]
    around.sort(key=lambda each: (each.lineno, -(each.end_lineno or 0)))
    match around:
        case []:
            return True
        case [*_, ast.Expr(value=ast.Await())]:
            return False
        case [*_, ast.Expr(value=ast.Call(func=ast.Attribute(attr="create_task") | ast.Name(id="create_task")))]:
            return False
    variable = _assigned(around[-1])
    functions = [each for each in around if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = _names(functions[-1] if functions else script)
    return variable is None or not all(_only_waits(name, at) for name, at in names if name.id == variable)


def _assigned(statement: ast.stmt) -> str | None:
    """Return the variable to which a statement assigns a value, or adds one, that it does not await."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return None if isinstance(value, ast.Await) else name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "add" | "extend"))):
            return name
    return None


def _only_waits(name: ast.Name, statement: ast.stmt | None) -> bool:
    """Return whether a statement with a variable assigns to it, adds to it, waits for it, or asks if it is empty."""
    match statement:
        case ast.Expr(value=ast.Await()):
            return True
        case ast.Expr():
            return _assigned(statement) == name.id
        case ast.If(test=test):
            return test is name
    return isinstance(name.ctx, ast.Store)


def _names(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.Name, ast.stmt | None]]:
    """Yield each variable name within a node, with the innermost statement around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name):
            yield child, statement
        yield from _names(child, child if isinstance(child, ast.stmt) else statement)
