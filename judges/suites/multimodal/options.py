"""Letters of multiple-choice options: A to Z, then AA, AB and so on. The last option is "none"."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase as _LETTERS

_MAX_LETTERS = 4
"""Longer words of capital letters are no option of any step."""
NONE_OF_THESE = "None of the other options match the correct element"
"""Text of the last option. Published answers and parsers rely on it."""


def option_name(index: int) -> str:
    """Return the letters of the option at a 0-based index; two letters from index 26.

    >>> [option_name(index) for index in (0, 25, 26, 52, 701, 702)]
    ['A', 'Z', 'AA', 'BA', 'ZZ', 'AAA']
    """
    if index < 0:
        raise ValueError(f"option index {index} is out of range: it must not be negative")
    name = ""
    while index >= 0:
        index, last = divmod(index, len(_LETTERS))
        name, index = _LETTERS[last] + name, index - 1
    return name


def option_index(name: str) -> int | None:
    """Return the index of the option called ``name``, or None if it is not an option name.

    >>> option_index("V"), option_index("NO"), option_index("Invalid")
    (21, 378, None)
    """
    if not 1 <= len(name) <= _MAX_LETTERS or any(letter not in _LETTERS for letter in name):
        return None
    index = -1
    for letter in name:
        index = (index + 1) * len(_LETTERS) + _LETTERS.index(letter)
    return index


def option_lines(texts: Sequence[str]) -> list[str]:
    """Return the options as shown to a model, one per line, with the "none" option last."""
    return [f"{option_name(index)}. {text}" for index, text in enumerate([*texts, NONE_OF_THESE])]
