"""Detection of the language of a text."""

from __future__ import annotations

import re
from typing import Final

MIN_LETTERS: Final = 20
"""Texts with fewer letters have no detectable language."""
_MAX_CHARS: Final = 2_000
_ADDRESS = re.compile(r"https?://\S+")


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of a text; None if the text is too short.

    The first call loads a model, which takes a second. Do not call it on an event loop.
    """
    start = _ADDRESS.sub(" ", text[: 2 * _MAX_CHARS])[:_MAX_CHARS]
    if sum(map(str.isalpha, start)) < MIN_LETTERS:
        return None
    import py3langid

    language, _ = py3langid.classify(start)
    return str(language)
