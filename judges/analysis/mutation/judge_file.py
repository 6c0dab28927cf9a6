"""Source locations in a judge file: declarations of leaves and fields, and exemptions from the field test. Pure.

An exemption is a comment with a reason, on a line of the declaration or on the line above it:
``# untested: the ministry's own page is the reference``.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from judges.analysis.mutation.leaves import ObservedLeaf
from judges.loader import is_script
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task

_EXEMPTION = re.compile(r"#\s*untested\b:?\s*(?P<reason>.*)", re.IGNORECASE)
_DECLARING = ("verify", "check", "add_leaf", "add_custom_node", "verify_by_url", "verify_by_urls", "simple_verify")
_GROUPING = ("parallel", "sequential", "add_parallel", "add_sequential")
_MAX_CONSTANT_CHARS = 200
_REPEATED = re.compile(r"_\d+$")
"""Suffix that the toolkit appends to the id of a node if it is already in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """Range of lines of the judge file, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    place: SourceRange
    patterns: tuple[re.Pattern[str], ...]
    declares: bool
    groups: tuple[re.Pattern[str], ...] = ()
    """Possible ids of the group on which the method is called."""


def judge_file(source: bytes, suffix: str) -> JudgeFile:
    """Parse the source of a judge file, Python or YAML."""
    return TaskFileSource(source) if suffix == YAML_SUFFIX else JudgeFile(source)


class JudgeFile:
    """Parsed source of a Python judge file."""

    def __init__(self, source: bytes) -> None:
        tree = ast.parse(source)
        self._calls = list(_calls(tree))
        self._fields = dict(_fields(tree))
        self._exempt = dict(_exemptions(source))
        self.constants: tuple[Any, ...] = tuple(dict.fromkeys(_constants(tree)))
        """Strings and numbers that its checks may compare values with."""
        self.is_script = is_script(tree)
        """Whether it is a public script."""

    def leaf(self, leaf: ObservedLeaf) -> SourceRange | None:
        """Return the call that declares a leaf, found by id and texts; None if it is ambiguous."""
        parent, _, own = leaf.key.rpartition("/")
        if self.is_script:
            own = _REPEATED.sub("", own)
        group = parent.rpartition("/")[2]
        texts = [text for text in (leaf.claim, leaf.desc, own, leaf.key) if text]
        scored = [
            (
                4 * any(pattern.fullmatch(own) for pattern in call.patterns)
                + 2 * _matches(call, texts)
                + any(pattern.fullmatch(group) for pattern in call.groups),
                call,
            )
            for call in self._calls
            if call.declares
        ]
        best = max((score for score, _ in scored), default=0)
        places = [call.place for score, call in scored if score == best]
        return places[0] if best and len(places) == 1 else None

    def field(self, declared: tuple[str, str]) -> SourceRange | None:
        """Return the location of a field's declaration."""
        return self._fields.get(declared)

    def exemption(self, place: SourceRange | None) -> str | None:
        """Return the reason for the exemption at a location; "" if it has no reason, None if there is no exemption."""
        if place is None:
            return None
        for line in range(place.first - 1, place.last + 1):
            reason, alone = self._exempt.get(line, (None, False))
            if reason is not None and (alone or line >= place.first):
                return reason
        return None


class TaskFileSource(JudgeFile):
    """Parsed source of a YAML task file. Its comments start with ``#``, too."""

    def __init__(self, source: bytes) -> None:
        self._compiled = compile_task(source)
        self._field_lines = self._compiled.field_lines()
        self._exempt = dict(_yaml_exemptions(self._compiled.document.text))
        self.constants = self._compiled.constants
        self.is_script = False

    def leaf(self, leaf: ObservedLeaf) -> SourceRange | None:
        return _range(self._compiled.lines(leaf.key))

    def field(self, declared: tuple[str, str]) -> SourceRange | None:
        return _range(self._field_lines.get(declared))


def _range(lines: tuple[int, int] | None) -> SourceRange | None:
    return None if lines is None else SourceRange(first=lines[0], last=lines[1])


def _yaml_exemptions(text: str) -> Iterator[tuple[int, tuple[str, bool]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.search(r"(?:^|(?<=\s))#.*", line)
        match = found and _EXEMPTION.match(found[0])
        if found and match:
            yield number, (match["reason"].strip(), not line[: found.start()].strip())


def _matches(call: _Call, texts: list[str]) -> int:
    return sum(any(pattern.fullmatch(text) for pattern in call.patterns) for text in texts)


def _calls(tree: ast.Module) -> Iterator[_Call]:
    groups = _groups(tree)
    for function, node in _by_function(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        on = getattr(node.func.value, "id", "") if isinstance(node.func, ast.Attribute) else ""
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        patterns = tuple(pattern for each in arguments if (pattern := _pattern(each)) is not None)
        place = SourceRange(first=node.lineno, last=node.end_lineno or node.lineno)
        yield _Call(
            place=place, patterns=patterns, declares=name in _DECLARING, groups=tuple(groups.get((function, on), ()))
        )


def _by_function(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of its top-level function."""
    for top in tree.body:
        function = top.name if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef) else ""
        for node in ast.walk(top):
            yield function, node


def _groups(tree: ast.Module) -> dict[tuple[str, str], list[re.Pattern[str]]]:
    """Return the possible group ids of each variable of a function: assigned to it, or passed as an argument."""
    functions = {top.name: top for top in tree.body if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef)}
    patterns: dict[tuple[str, str], list[re.Pattern[str]]] = {}
    for function, node in _by_function(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            named_values = [((function, to.id), value) for to, value in pairs if isinstance(to, ast.Name)]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions:
            called = functions[node.func.id]  # type: ignore[attr-defined]
            named_values = [
                ((called.name, to.arg), value) for to, value in zip(called.args.args, node.args, strict=False)
            ]
        else:
            continue
        for variable, value in named_values:
            if isinstance(value, ast.Call) and getattr(value.func, "attr", "") in _GROUPING:
                ids = [*value.args[:1], *(keyword.value for keyword in value.keywords if keyword.arg == "id")]
                patterns.setdefault(variable, []).extend(pattern for each in ids if (pattern := _pattern(each)))
    return patterns


def _pattern(node: ast.expr) -> re.Pattern[str] | None:
    """Return a pattern for the values of a string expression; None if it contains no constant text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        return re.compile(re.escape(node.value))
    if isinstance(node, ast.JoinedStr):
        parts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in node.values]
        return re.compile("".join(parts), re.DOTALL) if any(part != ".*" for part in parts) else None
    return None


def _fields(tree: ast.Module) -> Iterator[tuple[tuple[str, str], SourceRange]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    place = SourceRange(first=line.lineno, last=line.end_lineno or line.lineno)
                    yield (node.name, line.target.id), place


def _exemptions(source: bytes) -> Iterator[tuple[int, tuple[str, bool]]]:
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        match = _EXEMPTION.match(token.string) if token.type == tokenize.COMMENT else None
        if match:
            yield token.start[0], (match["reason"].strip(), not token.line[: token.start[1]].strip())


def _constants(tree: ast.Module) -> Iterator[Any]:
    """Yield strings and numbers, without arguments of calls (ids, descriptions, prompts) and docstrings."""
    passed = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Call) for each in _texts_passed(node)}
    passed |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if (
            id(node) not in passed
            and isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float)
            and not isinstance(node.value, bool)
            and len(str(node.value)) <= _MAX_CONSTANT_CHARS
        ):
            yield node.value


def _texts_passed(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call; none for string methods such as ``value.startswith("18")``."""
    if isinstance(call.func, ast.Attribute) and hasattr(str, call.func.attr):
        return []
    return [*call.args, *(keyword.value for keyword in call.keywords)]
