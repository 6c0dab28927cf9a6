"""The structure of an answer's markdown that its citations depend on: link labels, definitions, footnotes.

Not a markdown parser. It finds just what says how a URL in the text is cited, in one pass each, and is
lenient where agents are: a definition may stand in a list or a quotation.
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
    """A place in a text, ``text[start:end]`` in characters, with the label it goes by."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Report:
    """An answer's text, asked for its structure."""

    text: str

    def link_labels(self) -> dict[int, int]:
        """For each ``]`` with a ``(`` behind it where its ``[`` is; no label reaches over a blank line."""
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
        """For each ``[label]: target`` where the target begins, with its label; footnotes left out."""
        found = _DEFINITION.finditer(self.text)
        return {each.end(): each[1] for each in found if not each[1].startswith("^")}

    def footnotes(self) -> list[Span]:
        """Each ``[^label]: ...`` with its indented further lines, in order."""
        found = _FOOTNOTE.finditer(self.text)
        return [Span(start=each.start(), end=each.end(), label=each[1]) for each in found]

    def references(self) -> Iterator[tuple[Span, str]]:
        """Each ``[text][label]``, ``[label][]`` or ``[label]``, with the key of the definition it may refer to."""
        for each in _REFERENCE.finditer(self.text):
            yield Span(start=each.start(), end=each.end(), label=each[1]), reference_key(each[2] or each[1])


def reference_key(label: str) -> str:
    """What two labels have in common when they mean the same definition: case and spacing do not count."""
    return " ".join(label.casefold().split())
