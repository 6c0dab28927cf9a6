"""Confusable characters: maps a folded text to a skeleton without accents, with Latin look-alikes replaced.

For the detection of disguised text, never for finding quotes, because different texts become equal.
"""

from __future__ import annotations

import re
from array import array
from typing import Final

from judges.grounding.folding import FoldedText

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
