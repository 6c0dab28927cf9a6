"""Text folding for comparisons, with a map back to the original text.

Folding removes differences that copying introduces: case, spaces, quotation marks, dashes, invisible characters. It
keeps letters, digits and signs.

Also equal are characters that a writing system writes in several ways: the decimal digits of all scripts, Arabic kaf
and yeh in their Arabic and Persian code points, and Cyrillic yo and ye. Tatweel, Arabic vowel signs and Hebrew points
are dropped. So are spaces beside characters of scripts without word spaces, because line ends and typesetting insert
them. A hyphen at a line end becomes ``LINE_END_HYPHEN`` without a space: whether it belongs to the word is unknown.

A skeleton is a folded text without accents, with Latin look-alikes replaced. It is for the detection of disguised text,
never for finding quotes, because different texts become equal.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cache.unicode_forms import nfc

LINE_END_HYPHEN: Final = "\u2010"
"""Hyphen between letters at a line end. Other hyphens become "-"."""
_SOFT_HYPHEN = "\u00ad"
UNSPACED: Final = re.compile(
    "[\u0e00-\u0e4f\u0e5a-\u0ecf\u0ede-\u0eff\u1000-\u103f\u104a-\u108f\u1780-\u17df\u2e80-\u312f"
    "\u31a0-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f\U00020000-\U0003ffff]"
)
"""Letters and marks of scripts without word spaces: Thai, Lao, Burmese, Khmer, Han and kana."""
_PIECE = re.compile(
    r"(?P<ascii>[!-~]+(?: [!-~]+)*)"
    r"|(?P<space>\s[\s\u00ad\u200b-\u200f\u2060\ufeff]*)"
    r"|(?P<other>[^\x00-\x7f\s]+)"
    r"|(?P<control>.)",
    re.DOTALL,
)
_ASCII_QUOTES = str.maketrans({"`": "'"})
_SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u2039\u203a\u05f3", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u05f4", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    "\u2044": "/",
    "\u066b": ".",
    "\u066c": ",",
}
_VARIANTS = {
    **dict.fromkeys([0x0640, 0x0670, *range(0x0610, 0x061B), *range(0x064B, 0x0653), *range(0x06D6, 0x06DD)]),
    **dict.fromkeys([*range(0x0591, 0x05BE), 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7]),
    0x06A9: 0x0643,
    0x06CC: 0x064A,
}
"""Map for ``str.translate`` after decomposition. Alef maksura is no form of yeh: it distinguishes Arabic words."""
_DIAERESIS = "\u0308"
_YE = ("\u0435", "\u0415")
_KEPT_FORMS = ("<super>", "<sub>", "<fraction>", "<circle>")
"""Compatibility forms whose meaning differs from their plain digits: 10 squared is not 102."""
_LONG_CHARS = 4
_MAX_LONG = 5_000
"""Maximum characters of a text that are expanded to more than 4 letters each; further ones stay as they are."""
_INVISIBLE_CATEGORIES = frozenset({"Cf", "Cc", "Cs"})


@dataclass(frozen=True, slots=True)
class FoldedText:
    """Folded text. The character at index ``i`` comes from position ``starts[i]`` of ``original``."""

    text: str
    starts: array[int]
    original: str

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original of ``text[start:end]``, which must not be empty."""
        return self.starts[start], self.starts[end - 1] + 1


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
            if _ends_word_part(text, start, end):
                if text[start - 1] != _SOFT_HYPHEN:
                    pieces[-1] = pieces[-1][:-1] + LINE_END_HYPHEN
            elif not UNSPACED.match(text, end) and not (start and UNSPACED.match(text, start - 1)):
                pieces.append(" ")
                starts.append(start)
        elif match.lastgroup == "other":
            for place, char in enumerate(match[0], start):
                piece = "" if char == _DIAERESIS and pieces and pieces[-1] in _YE else _folded(char)
                if len(piece) > _LONG_CHARS:
                    expanded += 1
                    piece = piece if expanded <= _MAX_LONG else char
                pieces.append(piece)
                starts.extend([place] * len(piece))
    return FoldedText("".join(pieces), starts, text)


def _ends_word_part(text: str, start: int, end: int) -> bool:
    """Return whether the spaces ``text[start:end]`` are one line end after a hyphen between two letters."""
    return (
        start > 1
        and text[start - 1] in "-\u2010\u00ad"
        and text[start - 2].isalpha()
        and text[end : end + 1].isalpha()
        and text.count("\n", start, end) == 1  # an empty line begins a new paragraph
    )


def fold_marks(text: str) -> str:
    """Fold quotation marks, dashes, spaces and variants of one character only. Letters keep case and accents.

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

    return nfc(_without_yo(_PIECE.sub(folded_piece, text)))


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
    if category == "Nd":
        return str(unicodedata.decimal(char))
    plain = _without_yo(unicodedata.normalize("NFKD", char).translate(_VARIANTS))
    return plain if keep_case else unicodedata.normalize("NFKD", plain.casefold())


def _without_yo(decomposed: str) -> str:
    for letter in _YE:
        decomposed = decomposed.replace(letter + _DIAERESIS, letter)
    return decomposed


_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]+")
_NON_ASCII = re.compile("[^\x00-\x7f]+")
_LATIN_TWINS = {
    "a": "\u0430\u03b1\u0251\u1d00", "b": "\u0432\u0299", "c": "\u0441\u1d04\u03f2", "d": "\u0501\u1d05",
    "e": "\u0435\u03b5\u1d07", "g": "\u0261\u0262", "h": "\u04bb\u043d\u029c", "i": "\u0456\u03b9\u0131\u026a",
    "j": "\u0458\u03f3\u1d0a", "k": "\u043a\u03ba\u1d0b", "l": "\u04cf\u029f", "m": "\u043c\u1d0d", "n": "\u03b7\u0274",
    "o": "\u043e\u03bf\u0585\u1d0f", "p": "\u0440\u03c1\u1d18", "q": "\u051b", "r": "\u0280\u0433", "s": "\u0455\ua731",
    "t": "\u0442\u03c4\u1d1b", "u": "\u03c5\u1d1c", "v": "\u03bd\u0475\u1d20", "w": "\u051d\u03c9\u1d21",
    "x": "\u0445\u03c7", "y": "\u0443\u03b3\u028f", "z": "\u1d22",
}  # fmt: skip
CONFUSABLES: Final = {
    **{ord(twin): letter for letter, twins in _LATIN_TWINS.items() for twin in twins},
    **{first + place: chr(97 + place) for first in (0x24B6, 0x24D0) for place in range(26)},
}
"""Map for ``str.translate`` from letters that look like a Latin one (lower case; circled ones in both cases)."""


def confusable_skeleton(folded: FoldedText) -> FoldedText:
    """Return a folded text without accents and with look-alikes replaced by Latin letters."""
    if folded.text.isascii():
        return folded
    parts: list[str] = []
    starts: array[int] = array("I")
    place = 0
    for match in _MARKS.finditer(folded.text):
        parts.append(folded.text[place : match.start()])
        starts.extend(folded.starts[place : match.start()])
        place = match.end()
    parts.append(folded.text[place:])
    starts.extend(folded.starts[place:])
    return FoldedText(
        _NON_ASCII.sub(lambda match: match[0].translate(CONFUSABLES), "".join(parts)), starts, folded.original
    )
