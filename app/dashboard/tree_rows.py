"""Rows of a result's tree that one response contains.

A tree can have ten thousand leaves. A response contains about ``MAX_ROWS`` rows at most: the groups above the selected
leaf are expanded, each with a section of ``SECTION`` children around this leaf. Other rows are loaded on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.dashboard.outline import Node
from app.dashboard.result_cache import Tree
from rubrics.tree import leaves_below

SECTION: Final = 100
"""Maximum number of children of one group in a response."""
MAX_ROWS: Final = 200
"""After this number of rows, groups stay unloaded."""
SMALL_TREE: Final = 60
"""Trees with at most this number of nodes are initially expanded."""


class Show(StrEnum):
    """Nodes of the tree that are shown."""

    ALL = "all"
    MISSED = "missed"
    """Only what did not pass, with all groups expanded."""
    PARTLY = "partly"
    """Only partly supported claims, with all groups above them expanded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """Children of a group that the response omits.

    ``count`` children from position ``at``, of which ``first`` is the first; if ``earlier``, the ``count`` children
    before the loaded ones, of which the section from ``at`` is loaded next.
    """

    group: str
    at: int
    count: int
    first: Node
    earlier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node. ``below`` are the rows of its children."""

    node: Node
    expanded: bool
    below: Sequence[Row | Unloaded]


class TreeRows:
    """Builder of the rows of one response. ``expand``: all groups are expanded."""

    def __init__(self, tree: Tree, *, show: Show = Show.ALL, chosen: str | None = None, expand: bool = False) -> None:
        self._tree = tree
        self._show = show
        outline = tree.outline
        self._path = [] if chosen is None else [node.key for node in outline.path(chosen)]
        self._expand = expand or show is not Show.ALL or len(outline.by_key) <= SMALL_TREE
        self._count = 0

    def root(self) -> Row:
        """Return the row of the root with the rows below it."""
        return self._row(self._tree.outline.root)

    def section(self, group: str, at: int, *, earlier: bool = False) -> list[Row | Unloaded]:
        """Return the rows that replace an ``Unloaded`` row."""
        below = self._section(self._tree.outline.by_key[group], at)
        return [row for row in below if isinstance(row, Row) or row.group != group or row.earlier is earlier]

    def _row(self, node: Node) -> Row:
        self._count += 1
        expanded = self._expand or node.depth == 0 or node.key in self._path
        return Row(node=node, expanded=expanded, below=self._below(node, expanded=expanded))

    def _below(self, node: Node, *, expanded: bool) -> list[Row | Unloaded]:
        children = self._children(node)
        if not children:
            return []
        on_path = [place for place, child in enumerate(children) if child.key in self._path]
        if not on_path and (not expanded or self._count >= MAX_ROWS):
            return [Unloaded(group=node.key, at=0, count=len(children), first=children[0])]
        return self._section(node, on_path[0] // SECTION * SECTION if on_path else 0)

    def _section(self, node: Node, at: int) -> list[Row | Unloaded]:
        children = self._children(node)
        end = at + SECTION
        rows: list[Row | Unloaded] = [self._row(child) for child in children[at:end]]
        if at > 0:
            start = max(0, at - SECTION)
            rows.insert(0, Unloaded(group=node.key, at=start, count=at, first=children[start], earlier=True))
        if end < len(children):
            rows.append(Unloaded(group=node.key, at=end, count=len(children) - end, first=children[end]))
        return rows

    def _children(self, node: Node) -> Sequence[Node]:
        if self._show is Show.ALL:
            return node.children
        if self._show is Show.PARTLY:
            return [child for child in node.children if any(each.is_partly for each in leaves_below(child))]
        return [child for child in node.children if self._tree.state(child) != "passed"]
