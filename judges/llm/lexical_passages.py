"""A text in passages: what stands in one belongs together, for want of understanding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from judges.llm.lexical_words import Token, sentences, tokens


class Passage(NamedTuple):
    """A sentence, heading or table row, with the headings and column titles that it stands under."""

    start: int
    end: int
    tokens: tuple[Token, ...]
    context: tuple[str, ...]
    cells: tuple[str, ...] = ()

    @property
    def flat(self) -> str:
        return " ".join(token.key for token in self.tokens)


class Reading(NamedTuple):
    """A text in passages; ``proper`` are the words capitalised within sentences and nowhere in lower case."""

    passages: tuple[Passage, ...]
    proper: frozenset[str]
    flat: str


def passages(text: str) -> Iterator[Passage]:
    """The text in pieces so small that what stands in one belongs together."""
    heads: dict[int, str] = {}
    columns: list[str] = []
    for line in re.finditer(r"[^\n]+", text):
        body, size = line.group(), len(line.group().split())
        cells = re.split(r"\s*\|\s*|\t+", body.strip().strip("|"))
        columns = (columns or cells) if len(cells) > 1 else []
        titled = tuple(f"{cell} {title}" for cell, title in zip(cells, columns, strict=False))
        context = tuple(token.key for token in tokens("\n".join([*heads.values(), *columns])))
        for start, end in [(0, len(body))] if columns else sentences(body):
            yield Passage(line.start() + start, line.start() + end, tuple(tokens(body[start:end])), context, titled)
        level = len(body) - len(body.lstrip("#")) or 7
        if level < 7 or (not columns and size <= 8 and not re.search(r"[.!?:;,]\W*$|^\s*(?:[-*•]|\d+\.)\s", body)):
            heads = {n: head for n, head in heads.items() if n < level} | {level: body}
        elif size > 8:
            heads.setdefault(1, heads.get(7, ""))  # the last short line before the first long one is the title
        if size and size <= 8:
            heads.setdefault(0, body)  # the first line: the site's name, or the title of a document


@lru_cache(maxsize=4)
def read(text: str) -> Reading:
    """Take a text apart; kept, since every claim and vote on a page asks for it again."""
    found = tuple(passages(text))
    inner = {t.key for p in found for t in p.tokens[1:] if t.capital}
    proper = frozenset(inner - {t.key for p in found for t in p.tokens if not t.capital})
    return Reading(found, proper, f" {' | '.join(p.flat for p in found)} ")
