"""How the lexical judge reads text: words without case, accents and endings; numbers and dates without their spelling.

Pure functions over strings, English only. What is compared with what is decided in ``lexical``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

MONTHS, _WEEKDAYS, _COUNTED, _ORDERED, _ENDINGS, _VARIANTS = (
    line.split()
    for line in """january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
one two three four five six seven eight nine ten eleven twelve
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
ations ation ments ment ings ing ions ion ers ors er or ed es ly s e
began=begin built=build gave=give grew=grow held=hold kept=keep led=lead left=leave made=make ran=run sold=sell\
 taught=teach won=win written=write wrote=write cost=price costs=price deep=depth high=height long=length weigh=weight\
 weighs=weight weighed=weight wide=width cm=centimetre h=hour hr=hour hrs=hour kg=kilogram km=kilometre min=minute\
 mm=millimetre meter=metre meters=metre percent=% children=child men=man people=person women=woman""".splitlines()
)
_RESPELLED = {
    **{spelling: month for month in MONTHS for spelling in (month[:3], month[:4])},
    **{word: str(n) for words in (_COUNTED, _ORDERED) for n, word in enumerate(words, 1) if word != "one"},
    **dict(pair.split("=") for pair in _VARIANTS),
}
_TOKEN = re.compile(r"\d{4}-\d\d-\d\d\b|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[$€£¥%]")
_BREAK = re.compile(r"(?<=[.!?;])[\"'\u201d\u2019)\]]*\s+(?=[^\sa-z])|;\s+")
_ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|vs|approx|ca|[A-Z])\.$")


class Token(NamedTuple):
    """A word or number of a text: ``key`` is what all its spellings and inflections share."""

    key: str
    capital: bool
    digits: bool
    start: int
    end: int


@lru_cache(maxsize=65_536)
def key(word: str) -> str:
    """What the spellings of one word or number share: ``Advised`` and ``adviser``, ``1,200`` and ``1200``."""
    if word[0].isdigit():
        whole = re.sub(r",(?=\d{3}(?:\D|$))", "", word).replace(",", ".").removesuffix(":00")
        return (whole.rstrip("0").rstrip(".") if whole.count(".") == 1 else whole).lstrip("0") or "0"
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)).casefold()
    plain = re.sub(r"['\u2019]s?$", "", plain).replace("\u2019", "'")
    plain = _RESPELLED.get(plain, plain)
    if plain in MONTHS or plain[:1].isdigit():
        return plain
    ending = next((e for e in _ENDINGS if plain.endswith(e) and len(plain) - len(e) >= 3), "")
    if plain.endswith(("ies", "ied")) and len(plain) > 4:
        return plain[:-3] + "y"
    bare = plain.removesuffix(ending)
    return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] else bare


def tokens(text: str) -> list[Token]:
    """Every word, number and sign of money or percent in order; ``1931-05-12`` is read as ``12 May 1931``."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        raw, span = match.group(), match.span()
        if "-" in raw and 1 <= int(raw[5:7]) <= 12:
            found += [Token(key(raw[8:]), False, True, *span), Token(MONTHS[int(raw[5:7]) - 1], True, False, *span)]
            raw = raw[:4]
        same = key(raw)
        found.append(Token(same, raw[0].isupper(), same[0].isdigit(), *span))
    return found


def keys(words: str) -> frozenset[str]:
    return frozenset(token.key for token in tokens(words))


def sentences(line: str) -> Iterator[tuple[int, int]]:
    """The (start, end) of each sentence of one line; ``Dr.`` and initials end none."""
    start = 0
    for match in _BREAK.finditer(line):
        if not _ABBREVIATION.search(line, start, match.start()):
            yield start, match.start()
            start = match.end()
    if line[start:].strip():
        yield start, len(line)


STOP = keys(
    """a about above after all also am an and another any are as at away be became become been before being both but by
    can could did do does doing done each either for from had has have having he her hers him his how i if in into
    is it its itself just may might more most much must of off on once one only onto or other our out over per shall
    she should so some still such than that the their them then there these they this those through to too under
    until up upon us very was we were what when where whether which while who whom whose why will with would yet you
    your th st nd rd dr mr mrs ms prof professor sir located situated"""
)
NEGATIONS = keys("not no never neither nor none without cannot nobody nothing lacks")
PRONOUNS = keys("he she it they his her its their him them this that these those there here")
CALENDAR = keys(" ".join(MONTHS + _WEEKDAYS))
