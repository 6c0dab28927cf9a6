"""Whether quotes bear on a claim: its numbers, its names and most of its other words stand in them. Pure.

Far less than understanding. It is asked only where something gives reason to doubt the judge, so that a judge
who was talked into a verdict cannot back it with the next best sentence of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from judges.folding import fold
from judges.plain import plain_text

STEM_CHARS: Final = 5

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[\u20ac$\u00a3%]")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|[\"'\u201c\u2018(]\s*)$")
_SIGNS = {"\u20ac": "euro", "$": "dollar", "\u00a3": "pound", "%": "percent"}
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBERS = {word: str(value) for value, word in enumerate(_COUNTED.split())}
_SILENT = (
    "a an and are as at be been being by did do does for from had has have he her his if in into is it its of on or "
    "our she so some such than that the their them then there these they this those to was were which who whose will "
    "with would about after all also any before between both but can could during each more most no not only other "
    "over page pages site website according says said states stated claim answer listed given named called "
    "dr mr mrs ms prof sir st jr sr"
)
_STOP = frozenset(_SILENT.split())
_UNSPACED = 0x2E80


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text speaks of, folded."""

    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.numbers | self.names | self.words


def bears_on(claim: str, quotes: Iterable[str]) -> bool:
    """Whether the quotes together hold every number and name of the claim and half of its other words.

    >>> bears_on("The Halden Bridge opened in 1931.", ["In 1931 the Halden Bridge was opened."])
    True
    >>> bears_on("The Halden Bridge opened in 1931.", ["In 1934 the Halden Bridge was opened."])
    False
    """
    asked = terms(claim)
    held = frozenset[str]().union(*(terms(quote).all for quote in quotes))
    stems = {_stem(word) for word in held}
    if not asked.numbers <= held or not all(_stem(name) in stems for name in asked.names):
        return False
    shared = sum(_stem(word) in stems for word in asked.words)
    return bool(asked.all) and 2 * shared >= len(asked.words)


def terms(text: str) -> Terms:
    """The numbers, names and telling words of a text. A name is a capitalised word inside a sentence."""
    numbers: set[str] = set()
    names: set[str] = set()
    words: set[str] = set()
    found = list(_TOKEN.finditer(text))
    for place, token in enumerate(found):
        word = plain_text(fold(token[0])).text.removesuffix("'s")
        if token[0][0].isdigit():
            numbers.update(_numbers(token[0]))
        elif token[0] in _SIGNS:
            words.add(_SIGNS[token[0]])
        elif word in _NUMBERS:
            numbers.add(_NUMBERS[word])
        elif ord(word[:1] or " ") >= _UNSPACED:
            words.update(word[start : start + 2] for start in range(max(1, len(word) - 1)))
        elif word in _STOP or len(word) < 2:
            continue
        elif _is_name(text, found, place):
            names.add(word)
        else:
            words.add(word)
    return Terms(frozenset(numbers), frozenset(names), frozenset(words))


def _numbers(written: str) -> Iterable[str]:
    """A number without what separates thousands, without empty decimals and leading zeros."""
    plain = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", written)
    plain = re.sub(r"[.,]0+$", "", plain).replace(",", ".")
    return [plain.lstrip("0") or "0"]


def _is_name(text: str, found: list[re.Match[str]], place: int) -> bool:
    token = found[place]
    if not token[0][0].isupper():
        return False
    if _SENTENCE_START.search(text[: token.start()]) is None:
        return True
    follower = found[place + 1] if place + 1 < len(found) else None
    adjoins = follower is not None and text[token.end() : follower.start()] == " "
    return token[0][1:].lower() != token[0][1:] or (adjoins and follower is not None and follower[0][0].isupper())


def _stem(word: str) -> str:
    """The start of a word: what endings of number, case and tense leave alone."""
    return word[:STEM_CHARS] if len(word) > STEM_CHARS else word.removesuffix("s")
