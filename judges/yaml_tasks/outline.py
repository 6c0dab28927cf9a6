"""Outline of the rubric in the text of a task file, which may be invalid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from judges.yaml_tasks.document import Document, Path
from judges.yaml_tasks.model import DEFAULT_ITEMS

Value: TypeAlias = str | float | bool

_KINDS: Final = ("claim", "check", "parallel", "sequential", "for_each", "graded")
_GROUPS: Final = ("parallel", "sequential", "graded")
_TEXTS: Final = ("claim", "check", "description", "instruction")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode:
    """Node of the rubric in a file. ``values`` has the default of a key that the file leaves out.

    ``gated``: the group makes the node critical.
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


def _plain(value: Any) -> Value:
    return value if isinstance(value, str | float | int) else ""
