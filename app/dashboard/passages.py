"""Texts cut at the quotes in them, so that a template can mark those and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

AROUND = 420
"""Characters of a page shown before and behind a quote."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; ``quote`` numbers the quote it belongs to, None: it is only context."""

    text: str
    quote: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Part of a text; ``cut_before`` and ``cut_after`` say whether there is more of it."""

    pieces: tuple[Piece, ...]
    cut_before: bool
    cut_after: bool


def pieces(text: str, spans: Iterable[tuple[int, int]], *, start: int = 0, end: int | None = None) -> list[Piece]:
    """``text[start:end]`` cut at ``spans``; what overlaps an earlier span belongs to that one."""
    found: list[Piece] = []
    stop = len(text) if end is None else min(end, len(text))
    at = start
    for begin, finish, number in sorted((begin, finish, nth) for nth, (begin, finish) in enumerate(spans)):
        begin, finish = max(begin, at), min(finish, stop)
        if begin >= finish:
            continue
        if begin > at:
            found.append(Piece(text[at:begin]))
        found.append(Piece(text[begin:finish], number))
        at = finish
    if at < stop:
        found.append(Piece(text[at:stop]))
    return found


def passages(text: str, spans: Sequence[tuple[int, int]], *, around: int = AROUND) -> list[Passage]:
    """The surroundings of every span, those that touch each other as one."""
    windows: list[tuple[int, int]] = []
    for begin, finish in sorted(spans):
        low, high = _at_word(text, begin - around), min(len(text), finish + around)
        if windows and low <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(high, windows[-1][1]))
        else:
            windows.append((low, high))
    return [
        Passage(
            pieces=tuple(pieces(text, spans, start=low, end=high)),
            cut_before=low > 0,
            cut_after=high < len(text),
        )
        for low, high in windows
    ]


def _at_word(text: str, place: int) -> int:
    """The start of the word at or after a place."""
    if place <= 0:
        return 0
    space = text.find(" ", place, place + 40)
    return space + 1 if space >= 0 else place
