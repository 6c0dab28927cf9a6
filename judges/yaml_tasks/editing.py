"""Changes of single values in the text of a task file. Comments and the layout of everything else are kept.

A value is named by its field: the keys of the path to it, joined by ``/``, such as ``rubric/parallel/ferry/weight``.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeAlias

from judges.yaml_tasks.document import (
    Document,
    InvalidTask,
    Path,
    Problem,
    Span,
    quoted_scalar,
    read_document,
    resolve_scalar,
)
from judges.yaml_tasks.model import DEFAULT_ITEMS

Value: TypeAlias = str | float | bool

_KINDS: Final = ("claim", "check", "parallel", "sequential", "for_each", "graded")
_GROUPS: Final = ("parallel", "sequential", "graded")
_TEXTS: Final = ("claim", "check", "description", "instruction")
_NUMBERS: Final = ("weight", "score", "min", "max")
_ANCHORS: Final = ("claim", "check", "for_each", "description", "format")
"""Keys below whose value a new key is written, if the value is a scalar."""
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode:
    """Node of the rubric in a file, which may be invalid.

    ``values`` are the values that can be changed, by key, with the default of a key that the file leaves out.
    ``sources`` is shown only. ``gated``: the group makes the node critical.
    """

    path: str
    id: str
    kind: str
    depth: int
    line: int
    values: Mapping[str, Value]
    sources: str
    gated: bool
    children: int


def task_nodes(document: Document) -> list[TaskNode]:
    """Return the nodes of the rubric, each before its children. Other values are ignored."""
    rubric = document.value.get("rubric") if isinstance(document.value, dict) else None
    if not isinstance(rubric, dict):
        return []
    return list(_children(document, ("rubric",), rubric, depth=0, gated=rubric.get("all_or_nothing") is True))


def head_values(document: Document) -> dict[str, Value]:
    """Return the values of the task itself that can be changed: ``description`` (the question) and ``version``."""
    value = document.value if isinstance(document.value, dict) else {}
    return {"description": _plain(value.get("description", "")), "version": _plain(value.get("version", "1"))}


def edit_task(source: str, values: Mapping[str, str | bool], name: str) -> str:
    """Return the text of a task file with other values. A value equal to the present one changes nothing.

    ``values`` are texts as in a form, by field. A text that is a number is written as a number if the field has one.

    Raises:
        InvalidTask: ``source`` is not YAML, a field cannot be changed, or the text around a value permits no change.
    """
    document = read_document(source, name)
    fields = {(*path, key): value for path, found in _editable(document) for key, value in found.items()}
    changes: dict[Path, Value] = {}
    for field, given in values.items():
        path = tuple(field.split("/"))
        if path not in fields:
            message = f"the field {field!r} cannot be changed here; change it in the file"
            raise InvalidTask(name, [document.problem(path, message)])
        value = _read(given, path[-1])
        if not _same(value, fields[path]):
            changes[path] = value
    pieces = sorted((_replacement(document, path, value) for path, value in changes.items()), key=lambda each: each[0])
    text = document.text
    for start, end, piece in reversed(pieces):
        text = text[:start] + piece + text[end:]
    _check_only_changed(document, text, changes, name)
    return text


def field_of(document: Document, problem: Problem) -> str:
    """Return the field that a problem is about, or else the path of the nearest node; "" if it is about the file."""
    fields = [(*path, key) for path, values in _editable(document) for key in ("", *values)]
    known = {path[:-1] if path[-1] == "" else path for path in fields}
    path = problem.path
    while path and path not in known:
        path = path[:-1]
    return "/".join(map(str, path))


def _children(
    document: Document, path: Path, group: Mapping[str, Any], *, depth: int, gated: bool
) -> Iterator[TaskNode]:
    for key in _GROUPS:
        nodes = group.get(key)
        for id, node in nodes.items() if isinstance(nodes, dict) else ():
            yield from _node(document, (*path, key, id), str(id), node, depth=depth, gated=gated, level=key == "graded")
    if isinstance(each := group.get("each"), dict):
        yield from _node(document, (*path, "each"), "each", each, depth=depth, gated=gated, level=False)


def _node(
    document: Document, path: Path, id: str, node: Any, *, depth: int, gated: bool, level: bool
) -> Iterator[TaskNode]:
    kind = next((key for key in _KINDS if isinstance(node, dict) and key in node), None)
    if kind is None or "/" in id:
        return
    values: dict[str, Value] = {key: _plain(node[key]) for key in _TEXTS if key in node}
    if level:
        values["score"] = _plain(node.get("score"))
    else:
        values |= {"weight": _plain(node.get("weight", 1)), "critical": _plain(node.get("critical", False))}
    if kind == "for_each" and not isinstance(node["for_each"], list):
        values |= {"min": _plain(node.get("min", 1)), "max": _plain(node.get("max", DEFAULT_ITEMS))}
    all_critical = gated or node.get("critical") is True or node.get("all_or_nothing") is True
    below = list(_children(document, path, node, depth=depth + 1, gated=all_critical))
    sources = node.get("sources", node["for_each"] if kind == "for_each" else "")
    yield TaskNode(
        path="/".join(map(str, path)),
        id=id,
        kind=kind,
        depth=depth,
        line=document.lines(path)[0],
        values=values,
        sources=sources if isinstance(sources, str) else json.dumps(sources, ensure_ascii=False),
        gated=gated,
        children=sum(each.depth == depth + 1 for each in below),
    )
    yield from below


def _editable(document: Document) -> Iterator[tuple[Path, Mapping[str, Value]]]:
    yield (), head_values(document)
    for node in task_nodes(document):
        yield tuple(node.path.split("/")), node.values


def _plain(value: Any) -> Value:
    return value if isinstance(value, str | float | int) else ""


def _read(given: str | bool, key: str) -> Value:
    """Return the value that a form field means. A text in the place of a number is kept, so that it is reported."""
    if isinstance(given, bool):
        return given
    value = resolve_scalar(given.strip()) if key in _NUMBERS else None
    return value if isinstance(value, int | float) and isfinite(value) else given.replace("\r\n", "\n")


def _same(one: Value, other: Value) -> bool:
    return one == other and isinstance(one, str) == isinstance(other, str)


def _replacement(document: Document, path: Path, value: Value) -> tuple[int, int, str]:
    """Return the characters to replace, from and to, and the new text."""
    parent: Any = document.value
    for key in path[:-1]:
        parent = parent[key]
    mapping = document.span(path[:-1])
    if path[-1] not in parent:
        return _insertion(document, path, value, parent, mapping)
    span = document.span(path)
    old = document.text[span.start : span.end]
    if span.style in ("|", ">") and "+" not in old.partition("\n")[0]:  # blank lines after a block belong to the file
        old = old.rstrip()
    end = span.start + len(old)
    rest = document.text[end:].partition("\n")[0].strip()
    tokens = _tokens(value, old, span.style, mapping, can_be_block=not rest and mapping.style == "")
    token = _first_that_means(value, tokens, mapping) + ("\n" if old.endswith("\n") else "")
    return span.start, end, token if old else f" {token}"


def _insertion(
    document: Document, path: Path, value: Value, parent: Mapping[str, Any], mapping: Span
) -> tuple[int, int, str]:
    tokens = _tokens(value, "", "", mapping, can_be_block=False)
    entry = f"{path[-1]}: {_first_that_means(value, tokens, mapping)}"
    if mapping.style == "{":
        end = max(document.span((*path[:-1], key)).end for key in parent)
        return end, end, f", {entry}"
    line_break = "\r\n" if "\r\n" in document.text else "\n"
    indent = " " * mapping.column
    anchor = next((key for key in _ANCHORS if isinstance(parent.get(key), str | int)), None)
    if anchor is None:
        return mapping.start, mapping.start, f"{entry}{line_break}{indent}"
    lines = document.text.split("\n")
    last = document.lines((*path[:-1], anchor))[1]
    end = len("\n".join(lines[:last]).rstrip("\r\n"))
    return end, end, f"{line_break}{indent}{entry}"


def _tokens(value: Value, old: str, style: str, mapping: Span, *, can_be_block: bool) -> Iterator[str]:
    """Yield ways to write a value, the most similar to the old text first. The last one is always valid."""
    if not isinstance(value, str):
        yield json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
        return
    if style == "'":
        yield "'" + value.replace("'", "''") + "'"
    if style == '"':
        yield quoted_scalar(value)
    if can_be_block and (style in ("|", ">") or "\n" in value):
        yield from _blocks(value, old if style in ("|", ">") else "", mapping)
    if style != '"' and resolve_scalar(value) == value:
        yield value
    yield quoted_scalar(value)


def _blocks(value: str, old: str, mapping: Span) -> Iterator[str]:
    header, _, body = old.partition("\n")
    first = next((line for line in body.split("\n") if line.strip()), "")
    indent = " " * (len(first) - len(first.lstrip()) or mapping.column + 2)
    headers = [header.rstrip()] if header else []
    if header.startswith(">"):
        wrapped = "\n\n".join(textwrap.fill(line, _WIDTH, break_long_words=False) for line in value.split("\n"))
        yield f"{header.rstrip()}\n{textwrap.indent(wrapped, indent)}"
    for head in (*headers, "|-", "|"):
        yield f"{head}\n{textwrap.indent(value.rstrip(chr(10)), indent)}"


def _first_that_means(value: Value, tokens: Iterable[str], mapping: Span) -> str:
    """Return the first token that is read as ``value`` inside ``mapping``."""
    indent = " " * mapping.column
    for token in tokens:
        text = f"{{k: {token}, z: 1}}" if mapping.style == "{" else f"{indent}k: {token}\n{indent}z: 1\n"
        with suppress(InvalidTask):
            read = read_document(text, "").value
            if read == {"k": value, "z": 1} and _same(read["k"], value):
                return token
    raise AssertionError("a quoted scalar is valid everywhere")


def _check_only_changed(document: Document, text: str, changes: Mapping[Path, Value], name: str) -> None:
    """Check that the new text differs only in these values.

    Raises:
        InvalidTask: the text around one of them permits no change.
    """
    expected = json.loads(json.dumps(document.value))
    for path, value in changes.items():
        target = expected
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
    try:
        found = read_document(text, name).value
    except InvalidTask:
        found = None
    if found != expected:
        message = "the text around this value permits no change here; change it in the file"
        raise InvalidTask(name, [document.problem(path, message) for path in changes])
