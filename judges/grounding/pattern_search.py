"""Simultaneous search for many patterns: each pattern is only tried at words with which it can begin.

Trying every pattern at every position would dominate the time spent on a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from judges.grounding.injection_signals import SignPattern

_LETTERS = re.compile(r"[^\W\d_]+")
_QUOTE: Final = "[\\\"']?"
"""Optional quotation mark before the first word of a pattern."""


class Hit(NamedTuple):
    """Match of a wording at ``text[start:end]``."""

    wording: SignPattern
    start: int
    end: int


class _Candidate(NamedTuple):
    """Wording to try. ``number`` is its index. ``may_quote``: a quotation mark directly before belongs to the match."""

    number: int
    wording: SignPattern
    may_quote: bool


class PatternSearch:
    """Searches texts for a fixed set of wordings, with the same results as each pattern on its own."""

    def __init__(self, wordings: Iterable[SignPattern]) -> None:
        self._anywhere: list[SignPattern] = []
        at_words: dict[str, list[_Candidate]] = {}
        inside: dict[str, list[_Candidate]] = {}
        for number, wording in enumerate(wordings):
            source = wording.pattern.pattern
            known = beginnings(source)
            if known is None:
                self._anywhere.append(wording)
                continue
            openings = at_words if known.at_words else inside
            for letters in known.letters:
                openings.setdefault(letters, []).append(_Candidate(number, wording, source.startswith(_QUOTE)))
        self._openings = [_Openings(r"\b", at_words), _Openings("", inside)]

    def matches(self, text: str, start: int, end: int, *, reach: int) -> Iterator[Hit]:
        """Return every hit that starts in ``text[start:end]``. It may extend ``reach`` characters beyond ``end``."""
        for wording in self._anywhere:
            for hit in wording.pattern.finditer(text, start, end + reach):
                if hit.start() >= end:
                    break
                if wording.context_allows(text, hit.start()):
                    yield Hit(wording, *hit.span())
        for openings in self._openings:
            yield from openings.matches(text, start, end, end + reach)


class _Openings:
    """Combined search for the first letters of many wordings."""

    def __init__(self, before: str, by_letters: Mapping[str, Sequence[_Candidate]]) -> None:
        self._pattern = re.compile(before + _any_of(by_letters)) if by_letters else None
        # The pattern finds the longest letters at a position. Their prefixes match there as well.
        self._to_try = {
            prefix: tuple(
                {each for letters in by_letters if prefix.startswith(letters) for each in by_letters[letters]}
            )
            for prefix in by_letters
        }

    def matches(self, text: str, start: int, end: int, limit: int) -> Iterator[Hit]:
        if self._pattern is None:
            return
        free_from: dict[int, int] = {}
        opening = self._pattern.search(text, start, limit)
        while opening is not None and (place := opening.start()) < end:
            for number, wording, may_quote in self._to_try[opening[0]]:
                free = free_from.get(number, start)
                if place < free:
                    continue
                with_quote = may_quote and place > free and text[place - 1] in "\"'"
                hit = wording.pattern.match(text, place - 1 if with_quote else place, limit)
                if hit is not None and wording.context_allows(text, hit.start()):
                    free_from[number] = hit.end()
                    yield Hit(wording, *hit.span())
            opening = self._pattern.search(text, place + 1, limit)


class Beginnings(NamedTuple):
    """Letters that a match can begin with. ``at_words``: only at the start of a word."""

    letters: frozenset[str]
    at_words: bool


def beginnings(pattern: str) -> Beginnings | None:
    r"""Determine from the source of a pattern how its matches can begin; None if that is not evident.

    >>> known = beginnings(r"\b(?:ignor(?:e|ing)|(?:do not|stop) x|claims?)\b.*")
    >>> known and (sorted(known.letters), known.at_words)
    (['claim', 'do', 'ignor', 'stop'], True)
    >>> beginnings(r"</claim>") is None
    True
    """
    alternatives = [alternative.removeprefix(_QUOTE) for alternative in _alternatives(pattern)]
    at_words = all(option.startswith(r"\b") for option in alternatives)
    if not at_words and any(option.startswith(r"\b") for option in alternatives):
        return None
    known = [_first_letters(option.removeprefix(r"\b")) for option in alternatives]
    letters = frozenset(each for option in known if option is not None for each in option)
    return Beginnings(letters, at_words) if None not in known else None


def _first_letters(pattern: str) -> set[str] | None:
    """Return the literal first letters of a pattern without top-level alternatives, for all its ways to begin."""
    if pattern.startswith("(?:"):
        inner, rest = _group(pattern)
        alternatives = [_first_letters(alternative) for alternative in _alternatives(inner)]
        if rest[:1] in {"?", "*"}:
            alternatives.append(_first_letters(rest[1:].removeprefix("?")))
        known = [option for option in alternatives if option is not None]
        return {letters for option in known for letters in option} if len(known) == len(alternatives) else None
    letters = _LETTERS.match(pattern)
    if letters is None:
        return None
    is_last_optional = pattern[letters.end() : letters.end() + 1] in {"?", "*", "{"}
    required = letters[0][:-1] if is_last_optional else letters[0]
    return {required} if required else None


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars outside of groups."""
    parts = [""]
    depth = 0
    for piece in _pieces(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _group(pattern: str) -> tuple[str, str]:
    """Return the content of the group at the start of a pattern, and the rest of the pattern."""
    depth = place = 0
    for piece in _pieces(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        place += len(piece)
        if depth == 0:
            break
    return pattern[len("(?:") : place - 1], pattern[place:]


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _pieces(pattern: str) -> Iterator[str]:
    """Return the characters of a pattern, with escapes and character classes as one piece."""
    return (piece[0] for piece in _PIECE.finditer(pattern))


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for the longest of these words at a position, with common prefixes factored out."""
    by_letter: dict[str, set[str]] = {}
    for word in words:
        by_letter.setdefault(word[:1], set()).add(word[1:])
    may_end = by_letter.pop("", None) is not None
    alternatives = [letter + (_any_of(rest) if rest != {""} else "") for letter, rest in sorted(by_letter.items())]
    if not alternatives:
        return ""
    whole = alternatives[0] if len(alternatives) == 1 and not may_end else f"(?:{'|'.join(alternatives)})"
    return f"{whole}?" if may_end else whole
