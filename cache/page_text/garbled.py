"""Detection of garbled text: characters that are not the writing that the page shows.

Pure functions. Text is garbled if it was decoded with the wrong charset, or if a font has no mapping to Unicode.
"""

from __future__ import annotations

import re
from typing import Final

_MIN_CHARS: Final = 10
_SHARE: Final = 0.05
_MIN_DISTINCT: Final = 4
_UPPER_HALF = "\x80-\x9f" + bytes(range(0x80, 0x100)).decode("cp1252", errors="ignore")
_NO_WRITING = re.compile(
    r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\x80-\x84\x86-\x9f\ufffd]"
    rf"|[\xc0-\xd6\xd8-\xf6\xf8-\xff][{_UPPER_HALF}]{{3,}}"  # other charsets read as Windows-1252
    r"|[\ue000-\uf8ff\U000f0000-\U0010fffd]{4,}"  # private use
)


def unreadable_chars(text: str) -> int:
    r"""Return the number of characters that are no writing.

    These are control and replacement characters, words in private-use characters, and words in accented Latin-1
    characters without other letters. A word has at least four different characters: icons, rows of rating stars and
    bullets, and the pieces of large brackets in formulas are also private-use characters, and no language has words
    of accented letters only.

    >>> unreadable_chars("\uf005\uf005\uf005\uf005 Caf\xe9"), unreadable_chars("\xcc\xee\xf1\xf2")
    (0, 4)
    """
    runs = _NO_WRITING.findall(text)
    return sum(len(run) for run in runs if len(run) == 1 or len(set(run)) >= _MIN_DISTINCT)


def garbled_reason(text: str) -> str:
    """Return why a text is garbled; an empty string if it is readable.

    It is garbled if at least 10 characters and 5% of it, without white space, are no writing. Accented letters are
    usually less than 5% of a text in French or German, so it stays readable if each of them was replaced. If
    the share is greater, whole names or sentences are missing, and a claim may rely on them.
    """
    unreadable = unreadable_chars(text)
    chars = sum(map(len, text.split()))
    if unreadable < _MIN_CHARS or unreadable < _SHARE * chars:
        return ""
    return f"{unreadable} of {chars} characters are no writing"
