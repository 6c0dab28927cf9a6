"""Markdown structure of an answer that citations depend on: link labels, definitions, footnotes.

This is not a Markdown parser. Each function makes one pass. The syntax is lenient, as agents are: a definition may be
inside a list or a block quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LABEL_CHARS = 300

_BRACKET = re.compile(r"\\.|[\[\]]|\n[ \t]*+\n", re.DOTALL)
_LINE_START = r"^[ \t]{0,8}(?:[>*+-][ \t]{1,4}){0,3}"
_DEFINITION = re.compile(rf"{_LINE_START}\[([^\[\]\n]{{1,200}})\]:[ \t]{{0,8}}<?", re.MULTILINE)
_FOOTNOTE = re.compile(rf"{_LINE_START}\[\^([^\[\]\n]{{1,200}})\]:[^\n]*+(?>(?:\n(?: {{4}}|\t)[^\n]*+)*)", re.MULTILINE)
_REFERENCE = re.compile(r"(?<!\\)\[([^\[\]\n]{1,300})\](?:\[([^\[\]\n]{0,200})\])?(?![(:\[])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Labelled part of a text: ``text[start:end]`` in characters."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class MarkdownStructure:
    """Text of an answer, with methods that find its structure."""

    text: str

    def link_labels(self) -> dict[int, int]:
        """Map the position of each ``]`` that is followed by ``(`` to its ``[``. A label ends at a blank line."""
        pairs: dict[int, int] = {}
        open_at: list[int] = []
        for found in _BRACKET.finditer(self.text):
            mark = found[0]
            if mark == "[":
                open_at.append(found.start())
            elif mark == "]" and open_at:
                opened = open_at.pop()
                if self.text.startswith("(", found.end()):
                    pairs[found.start()] = opened
            elif mark[0] == "\n":
                open_at.clear()
        return pairs

    def definitions(self) -> dict[int, str]:
        """Map the start of the target in each ``[label]: target`` to the label, without footnotes."""
        found = _DEFINITION.finditer(self.text)
        return {each.end(): each[1] for each in found if not each[1].startswith("^")}

    def footnotes(self) -> list[Span]:
        """Return each ``[^label]: ...`` with its indented continuation lines, in text order."""
        found = _FOOTNOTE.finditer(self.text)
        return [Span(start=each.start(), end=each.end(), label=each[1]) for each in found]

    def references(self) -> Iterator[tuple[Span, str]]:
        """Yield each ``[text][label]``, ``[label][]`` or ``[label]`` with the key of its possible definition."""
        for each in _REFERENCE.finditer(self.text):
            yield Span(start=each.start(), end=each.end(), label=each[1]), reference_key(each[2] or each[1])


def reference_key(label: str) -> str:
    """Return the key of a label. Labels that differ only in case and spacing refer to the same definition."""
    return " ".join(label.casefold().split())
