"""Letters of multiple-choice options: A to Z, then AA, AB and so on. The last option is "none"."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase as _LETTERS

NONE_OF_THESE = "None of the other options match the correct element"
"""Text of the last option. Published answers and parsers rely on it."""


def option_name(index: int) -> str:
    """Return the letters of the option at a 0-based index; two letters from index 26.

    >>> [option_name(index) for index in (0, 25, 26, 52, 701)]
    ['A', 'Z', 'AA', 'BA', 'ZZ']
    """
    if not 0 <= index < len(_LETTERS) * (len(_LETTERS) + 1):
        raise ValueError(f"option index {index} is out of range: there are names for 0 to 701")
    first, last = divmod(index, len(_LETTERS))
    return (_LETTERS[first - 1] if first else "") + _LETTERS[last]


def option_index(name: str) -> int | None:
    """Return the index of the option called ``name``, or None if it is not an option name.

    >>> option_index("V"), option_index("NO"), option_index("Invalid")
    (21, 378, None)
    """
    if not 1 <= len(name) <= 2 or any(letter not in _LETTERS for letter in name):
        return None
    *first, last = (_LETTERS.index(letter) for letter in name)
    return (first[0] + 1) * len(_LETTERS) + last if first else last


def option_lines(texts: Sequence[str]) -> list[str]:
    """Return the options as shown to a model, one per line, with the "none" option last."""
    return [f"{option_name(index)}. {text}" for index, text in enumerate([*texts, NONE_OF_THESE])]
