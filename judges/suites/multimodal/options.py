"""The letters of a multiple choice: A to Z, then AA, AB ..., and a last one for none of them."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase as _LETTERS

NONE_OF_THESE = "None of the other options match the correct element"
"""The text of the last option, by which published answers and parsers know it."""


def option_name(index: int) -> str:
    """The letter of the option at ``index``, counted from 0; two letters from the 27th on.

    >>> [option_name(index) for index in (0, 25, 26, 52, 701)]
    ['A', 'Z', 'AA', 'BA', 'ZZ']
    """
    if not 0 <= index < len(_LETTERS) * (len(_LETTERS) + 1):
        raise ValueError(f"there is no letter for option {index}")
    first, last = divmod(index, len(_LETTERS))
    return (_LETTERS[first - 1] if first else "") + _LETTERS[last]


def option_index(name: str) -> int | None:
    """The place of the option called ``name``; None for what is no letter.

    >>> option_index("V"), option_index("NO"), option_index("Invalid")
    (21, 378, None)
    """
    if not 1 <= len(name) <= 2 or any(letter not in _LETTERS for letter in name):
        return None
    *first, last = (_LETTERS.index(letter) for letter in name)
    return (first[0] + 1) * len(_LETTERS) + last if first else last


def option_lines(texts: Sequence[str]) -> list[str]:
    """The options as a model is shown them, one a line, with the none option last."""
    return [f"{option_name(index)}. {text}" for index, text in enumerate([*texts, NONE_OF_THESE])]
