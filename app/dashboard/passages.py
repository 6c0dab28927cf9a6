"""Texts split at their quotes, so that a template can highlight the quotes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urldefrag

from cache.page_text.sentences import sentence_around

CONTEXT_CHARS = 160
"""Minimum characters of context before and after a quote."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text. ``quote`` is the number of its quote; None: context."""

    text: str
    quote: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Excerpt of a text. ``cut_before`` and ``cut_after``: whether the text continues there."""

    pieces: tuple[Piece, ...]
    cut_before: bool
    cut_after: bool


def pieces(text: str, spans: Iterable[tuple[int, int]], *, start: int = 0, end: int | None = None) -> list[Piece]:
    """Split ``text[start:end]`` at ``spans``. Overlapping text belongs to the earlier span."""
    split: list[Piece] = []
    stop = len(text) if end is None else min(end, len(text))
    at = start
    for begin, finish, number in sorted((begin, finish, nth) for nth, (begin, finish) in enumerate(spans)):
        begin, finish = max(begin, at), min(finish, stop)
        if begin >= finish:
            continue
        if begin > at:
            split.append(Piece(text[at:begin]))
        split.append(Piece(text[begin:finish], number))
        at = finish
    if at < stop:
        split.append(Piece(text[at:stop]))
    return split


def passages(text: str, spans: Sequence[tuple[int, int]], *, context_chars: int = CONTEXT_CHARS) -> list[Passage]:
    """Return the spans with their whole sentences and ``context_chars`` of context. Touching excerpts are merged."""
    windows: list[tuple[int, int]] = []
    for begin, finish in sorted(spans):
        first, last = sentence_around(text, begin, finish)
        low = min(_at_word(text, begin - context_chars), first)
        high = max(min(len(text), finish + context_chars), last)
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
    """Return the start of the first word at or after a position."""
    if place <= 0:
        return 0
    space = text.find(" ", place, place + 40)
    return space + 1 if space >= 0 else place


_FRAGMENT_WORDS: Final = 5


def text_fragment_url(url: str, text: str) -> str:
    """Return a URL with a text fragment (WICG draft "URL Fragment Text Directives") that highlights ``text``.

    >>> text_fragment_url("https://a.example/x#top", "one two-three")
    'https://a.example/x#top:~:text=one%20two%2Dthree'
    """
    words = text.split()
    if len(words) > 2 * _FRAGMENT_WORDS:
        parts = [" ".join(words[:_FRAGMENT_WORDS]), " ".join(words[-_FRAGMENT_WORDS:])]
    else:
        parts = [" ".join(words)]
    base, fragment = urldefrag(url)
    written = ",".join(quote(part, safe="").replace("-", "%2D") for part in parts)
    return f"{base}#{fragment.partition(':~:')[0]}:~:text={written}"
