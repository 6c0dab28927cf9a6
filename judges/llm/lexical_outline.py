"""A text as a tree of headings, lists and table rows, with what is labelled how, for the lexical judge to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

ROW, TEXT, ITEM, MORE = 8, 9, 10, 99
"""Levels of lines that are no heading; list items count on from ``ITEM`` by their indentation."""
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)|<?https?://\S+|\[\^?\w+\]")
_DEEPEST_INDENT = 24
_MAX_LINE_CHARS = 10_000
_NESTED_LABELS = 3
"""How many labels may precede one value, as in ``**Boat:** leaves: 9:40``."""
_PAIR = re.compile(
    r"[\W_]*(?P<label>[^\W_][^:|*\n]{0,50}?)(?:\s*:\*\*\s*|\*\*\s*:?\s+|\s*:\s+|\s[\u2013\u2014-]\s)(?P<value>\S.*)"
)
_NEXT_PAIR = re.compile(r"[,;.]\s+(?=[A-Za-z][\w /-]{0,30}:\s)")
_MARK = re.compile(r"^\s*(?:[-+•>]|#+|\*(?=\s)|\d{1,3}[.)])\s+(?=\S)")


@dataclass(slots=True, kw_only=True)
class Node:
    """A line and what stands under it. ``level``: 1-7 a heading, then row, text, items by indentation, continuation."""

    level: int
    start: int
    end: int
    text: str = ""
    columns: tuple[str, ...] = ()
    children: list[Node] = field(default_factory=list)
    values: tuple[Labelled, ...] = ()

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(cell.strip() for cell in self.text.strip().strip("|").split("|"))


class Labelled(NamedTuple):
    """A value as it stands in the text, what it is called there, and the node that it is in."""

    label: str
    text: str
    start: int
    node: Node


def outline(text: str) -> Node:
    """The text as a tree of its headings, lists, table rows and other lines."""
    stack = [Node(level=0, start=0, end=len(text))]
    columns: tuple[str, ...] = ()
    fresh = True
    for match in re.finditer(r"[^\n]*\n?", text):
        raw = match.group()[:_MAX_LINE_CHARS].rstrip()
        node = Node(level=line_level(raw, fresh=fresh), start=match.start(), end=match.end(), text=raw)
        columns = (columns or node.cells) if node.level == ROW else ()
        fresh = node.level < ROW or not raw
        if not raw or (node.level == ROW and set(raw) <= set("|-: ")):
            continue
        node.columns, node.values = columns, () if columns else tuple(within(node))
        while stack[-1].level >= node.level:
            stack.pop()
        stack[-1].children.append(node)
        stack.append(node)
        for above in stack[1:]:
            above.end = node.end
    return stack[0]


def line_level(raw: str, *, fresh: bool) -> int:
    """What kind of line it is; ``fresh`` when it opens a paragraph."""
    bare = raw.strip()
    if bare.count("|") > 1 or " | " in bare:
        return ROW
    if heading := re.match(r"(#{1,6})\s|\*\*[^*]+\*\*:?$", bare):
        return len(heading[1] or "1234567")
    if re.match(r"(?:[-*+•]|\d+[.)])\s", bare):
        return ITEM + min(len(raw) - len(raw.lstrip()), _DEEPEST_INDENT)
    return TEXT if fresh or raw.startswith("**") else MORE


def within(node: Node) -> Iterator[Labelled]:
    """The ``Label: value`` pairs of one line."""
    start = mark.end() if (mark := _MARK.match(node.text)) else 0
    for end in [*(m.end() for m in _NEXT_PAIR.finditer(node.text)), len(node.text)]:
        for _ in range(_NESTED_LABELS):
            if not (match := _PAIR.match(node.text, start, end)):
                break
            start = match.start("value")
            yield Labelled(match["label"], match["value"], node.start + start, node)
        start = end


def labelled(top: Node) -> Iterator[Labelled]:
    """Each value with its label: ``Label: value``, a cell by its column or row title, what stands under a heading."""
    for node in top.walk():
        if node.level == ROW:
            pairs = zip(node.columns if node is top else node.cells, node.cells[node is not top :], strict=False)
            for label, cell in pairs if node is top else list(pairs)[:1]:
                yield Labelled(label, cell, node.start + max(node.text.find(cell), 0), node)
            continue
        if node.children and (node.level < ROW or node.text.endswith(":")):
            yield Labelled(clean(node.text), node.children[0].text, node.children[0].start, node)
        yield from node.values


def clean(raw: str) -> str:
    """The words of a value: without list mark, emphasis and links."""
    raw = raw[mark.end() :] if (mark := _MARK.match(raw)) else raw
    if link := LINK.search(raw):
        before = raw[: link.start()]
        before = re.sub(r"[,;(\u2013\u2014][a-z\s:]*$", "", before)  # ", see the" goes with its link
        raw = before if re.search(r"\w", before) else link[1] or raw[link.end() :]
    return re.sub(r"[*`]", "", raw).strip(' \t_:;,.(\u2013\u2014-|["')


def lead(node: Node) -> str:
    """What a record is called: its heading, first cell that is no number, bold words, or first words up to a break."""
    if node.level == ROW:
        return next((clean(cell) for cell in node.cells if not cell.isdigit()), "")
    raw = _MARK.sub("", node.text)
    if bold := re.match(r"\s*\*\*(.+?)\*\*", raw):
        return clean(bold[1])
    return clean(raw) if node.level < ROW else clean(re.split(r"\s[\u2013\u2014-]\s|[(;]|[:,.]\s", clean(raw))[0])
