"""Unicode normalization in linear time.

``unicodedata.normalize`` sorts each run of combining marks in quadratic time: 9 minutes for 1 MiB. No writing system
needs more than 30 marks for a character (Unicode Standard Annex 15, Stream-Safe Text Format).
"""

from __future__ import annotations

import re
import unicodedata

MAX_MARKS = 30
"""Combining marks after a character; further ones are removed."""
_TIBETAN_VOWELS = "\u0f73\u0f75\u0f81"
"""The only characters with combining class 0 whose decomposition starts with a combining mark."""


def nfc(text: str) -> str:
    """Return a text in NFC, without the marks beyond ``MAX_MARKS`` of a run.

    >>> nfc("Cafe\\u0301") == "Caf\\u00e9", len(nfc("a" + "\\u0591\\u05b0" * 1000))
    (True, 31)
    """
    if text.isascii():
        return text
    marks = "".join(char for char in set(text) if unicodedata.combining(char) or char in _TIBETAN_VOWELS)
    if marks:
        mark = f"[{re.escape(marks)}]"
        text = re.sub(f"({mark}{{{MAX_MARKS}}}){mark}+", r"\1", text)
    return unicodedata.normalize("NFC", text)
