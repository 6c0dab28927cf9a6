"""Text folding for comparisons, with a map back to the original text.

Folding removes differences that copying introduces: case, spaces, quotation marks, dashes, invisible characters. It
keeps letters, digits and signs.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache

from cache.unicode_forms import nfc

_PIECE = re.compile(
    r"(?P<ascii>[!-~]+(?: [!-~]+)*)"
    r"|(?P<space>\s[\s\u00ad\u200b-\u200f\u2060\ufeff]*)"
    r"|(?P<other>[^\x00-\x7f\s]+)"
    r"|(?P<control>.)",
    re.DOTALL,
)
_ASCII_QUOTES = str.maketrans({"`": "'"})
_SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u2039\u203a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    "\u2044": "/",
}
_KEPT_FORMS = ("<super>", "<sub>", "<fraction>", "<circle>")
"""Compatibility forms whose meaning differs from their plain digits: 10 squared is not 102."""
_LONG_CHARS = 4
_MAX_LONG = 5_000
"""Maximum characters of a text that are expanded to more than 4 letters each; further ones stay as they are."""
_INVISIBLE_CATEGORIES = frozenset({"Cf", "Cc", "Cs"})


@dataclass(frozen=True, slots=True)
class FoldedText:
    """Folded text. The character at index ``i`` comes from position ``starts[i]`` of the original."""

    text: str
    starts: array[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original of ``text[start:end]``, which must not be empty."""
        return self.starts[start], self.starts[end - 1] + 1

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return 2 * len(self.text) + self.starts.itemsize * len(self.starts)


def fold(text: str) -> FoldedText:
    """Fold a text.

    >>> fold("\\u201cCaf\\u00e9\\u201d  \\u2013 5\\u00b2").text == '"cafe\\u0301" - 5\\u00b2'
    True
    """
    pieces: list[str] = []
    starts: array[int] = array("I")
    expanded = 0
    for match in _PIECE.finditer(text):
        start, end = match.span()
        if match.lastgroup == "ascii":
            pieces.append(match[0].lower().translate(_ASCII_QUOTES))
            starts.extend(range(start, end))
        elif match.lastgroup == "space":
            pieces.append(" ")
            starts.append(start)
        elif match.lastgroup == "other":
            for place, char in enumerate(match[0], start):
                piece = _folded(char)
                if len(piece) > _LONG_CHARS:
                    expanded += 1
                    piece = piece if expanded <= _MAX_LONG else char
                pieces.append(piece)
                starts.extend([place] * len(piece))
    return FoldedText("".join(pieces), starts)


def fold_marks(text: str) -> str:
    """Fold quotation marks, dashes, spaces and invisible characters only. Letters keep case and accents.

    >>> fold_marks("Mary  O\u2019Shea \u2013 Cafe\u0301") == "Mary O'Shea - Caf\u00e9"
    True
    """
    expanded = 0

    def folded_piece(piece: re.Match[str]) -> str:
        nonlocal expanded
        if piece.lastgroup == "ascii":
            return piece[0].translate(_ASCII_QUOTES)
        if piece.lastgroup == "space":
            return " "
        if piece.lastgroup == "control":
            return ""
        parts: list[str] = []
        for char in piece[0]:
            part = _folded(char, keep_case=True)
            if len(part) > _LONG_CHARS:
                expanded += 1
                part = part if expanded <= _MAX_LONG else char
            parts.append(part)
        return "".join(parts)

    return nfc(_PIECE.sub(folded_piece, text))


@lru_cache(maxsize=8192)
def _folded(char: str, *, keep_case: bool = False) -> str:
    """Return the folded form of a non-ASCII character; empty for an invisible one."""
    folded_char = _SAME.get(char)
    if folded_char is not None:
        return folded_char
    category = unicodedata.category(char)
    if category in _INVISIBLE_CATEGORIES or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return ""
    if unicodedata.decomposition(char).startswith(_KEPT_FORMS):
        return char
    plain = unicodedata.normalize("NFKD", char)
    return plain if keep_case else unicodedata.normalize("NFKD", plain.casefold())
