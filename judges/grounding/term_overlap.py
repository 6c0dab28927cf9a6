"""Overlap of terms between a claim and a text: names and numbers that both contain. Pure functions.

Overlap alone does not show that a text supports a claim. There are two tests of different strength. ``missing_terms``
applies to every page: a name or number of the claim that the page does not contain cannot come from it.
``covers_terms`` applies to quotes if there is reason to distrust the judge, so that a manipulated judge cannot support
its verdict with an unrelated sentence.

For readers of a refuted claim, ``closest_passage`` finds the passage that is closest to it, by the words, names and
numbers that both contain (BM25 without term frequency: rare terms count more). It shows what the page says on the
subject; it is no ground of a verdict.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from judges.grounding.folding import confusable_skeleton, fold, fold_marks

STEM_CHARS: Final = 5
SMALL_COUNT: Final = 20
"""Numbers up to this value are not required in a page: a reader can count the items of a list."""
MAX_ABBREVIATION: Final = 5
_MAX_PARTICLES_CHARS: Final = 40
_MAX_COUNT_DIGITS: Final = 10
COMPARED_WORDS: Final = 5
"""Maximum distance in words between a number and a preceding word that compares or rounds it."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[\u20ac$\u00a3%]")
_SPACED = re.compile(r"\b\d{1,3}(?: \d{3})+\b")
_BEFORE_SENTENCE = re.compile(r"[\"'(]\s*+|[.!?:;]\s++")
_ENDING = re.compile(r"(?<=\w{3})(?:ings?|e[drs]|ers|ors?|es|s|e)$")
_PARTICLES = re.compile(r"[ .'-]*(?:(?:of|the|de|la|du|di|da|von|van|der|den|del|al) )*")
_THOUSANDS = re.compile(r"[.,](?=\d{3}(?:\D|$))")
_ZERO_DECIMALS = re.compile(r"[.,]0+$")
_SIGNS = {"\u20ac": "euro", "$": "dollar", "\u00a3": "pound", "%": "percent"}
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split())}
_STOP_WORDS = (
    "a an and are as at be been being by did do does for from had has have he her his if in into is it its of on or "
    "our she so some such than that the their them then there these they this those to was were which who whose will "
    "with would about after all also any before between both but can could during each more most no not only other "
    "over page pages site website according says said claim answer listed given named called "
    "dr mr mrs ms prof sir st jr sr"
)
_STOP = frozenset(_STOP_WORDS.split())
_COMPARING = (
    "less more fewer greater higher lower larger smaller cheaper longer shorter under over below above least most "
    "within up maximum minimum max min between exceeds exceed exceeding than about approximately around roughly nearly "
    "almost circa ca some rounded near"
)
_COMPARED = frozenset(_COMPARING.split())
_WEEKDAYS = frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"})
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "mio": 1e6, "billion": 1e9, "bn": 1e9}
_SCALE_VALUES = frozenset(_SCALES.values())
_MONTHS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
_UNSPACED = 0x2E80
MAX_TERMS_CHARS = 256 * 1024
"""Claims and quotes are read up to here. They come from replies of models, which are shorter."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of a text, folded."""

    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.numbers | self.names | self.words


def covers_terms(claim: str, quotes: Iterable[str]) -> bool:
    """Return whether the quotes together contain every number and name of the claim and half of its other words.

    >>> covers_terms("The Halden Bridge opened in 1931.", ["In 1931 the Halden Bridge was opened."])
    True
    >>> covers_terms("The Halden Bridge opened in 1931.", ["In 1934 the Halden Bridge was opened."])
    False
    """
    claim_terms = terms(claim)
    quoted_terms = frozenset[str]().union(*(terms(quote).all for quote in quotes))
    stems = {_stem(word) for word in quoted_terms}
    if not claim_terms.numbers <= quoted_terms or not all(_stem(name) in stems for name in claim_terms.names):
        return False
    shared = sum(_stem(word) in stems for word in claim_terms.words)
    return bool(claim_terms.all) and 2 * shared >= len(claim_terms.words)


def missing_terms(claim: str, stems: frozenset[str]) -> tuple[str, ...]:
    """Return the names and numbers of a claim, as written, that a text does not contain, given its ``stems_of``.

    Ignored are terms that need not occur literally: small counts, compared or rounded numbers ("under 150", "about
    200"), months, and abbreviations. Of a name of several words, one is enough.

    >>> missing_terms("Ida Norrstad led it since 1998.", stems_of("I. Norrstad has been its head since 1999"))
    ('1998',)
    """
    claim = fold_marks(claim[:MAX_TERMS_CHARS])
    tokens = list(_TOKEN.finditer(claim))
    missing = []
    for run in _names(claim, tokens):
        initials = "".join(name[0].lower() for name in run)
        if initials not in stems and not any(_is_known(name, stems) for name in run):
            missing.append(" ".join(run))
    for place, token in enumerate(tokens):
        written = token[0]
        if (
            written[0].isdecimal()
            and _number(written) not in stems
            and _is_exact(tokens, place)
            and not _written(tokens, place) & stems
        ):
            missing.append(written)
    return tuple(dict.fromkeys(missing))


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of all words, and all numbers, of a text."""
    return stems_in(confusable_skeleton(fold(text)).text)


def stems_in(plain: str) -> frozenset[str]:
    """Like ``stems_of``, for a text that is folded and a skeleton already."""
    stems: set[str] = set()
    for token in {*_TOKEN.findall(plain), *(spaced.replace(" ", "") for spaced in _SPACED.findall(plain))}:
        stems |= {_number(token)} if token[0].isdecimal() else {_stem(token.removesuffix("'s"))}
        if token in _NUMBERS:
            stems.add(_NUMBERS[token])
    return frozenset(stems)


def tokens_of(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the words and numbers in ``text[start:end]`` as written."""
    return (token[0] for token in _TOKEN.finditer(text, start, end))


def distinct_tokens(text: str) -> set[str]:
    """Return the distinct words and numbers of a text as written."""
    return set(_TOKEN.findall(text))


def stems_of_token(token: str) -> frozenset[str]:
    """Return the stem of a word, a number in its normal form, or the two-letter parts of a word without spaces."""
    if token[0].isdecimal():
        return frozenset({_number(token)})
    word = _word(_SIGNS.get(token, token))
    if word in _NUMBERS:
        return frozenset({_NUMBERS[word]})
    if ord(word[:1] or " ") >= _UNSPACED:
        return frozenset(word[start : start + 2] for start in range(max(1, len(word) - 1)))
    return frozenset({_stem(word)})


def terms(text: str) -> Terms:
    """Return the numbers, names and significant words of a text. A name is a capitalised word inside a sentence."""
    text = fold_marks(text[:MAX_TERMS_CHARS])
    numbers: set[str] = set()
    names: set[str] = set()
    words: set[str] = set()
    tokens = list(_TOKEN.finditer(text))
    starts = sentence_starts(text)
    known: set[str] = set()
    capitalised: dict[str, str] = {}
    for place, token in enumerate(tokens):
        written = token[0]
        if written in known:
            continue
        word = capitalised.get(written) or _word(written)
        if written in capitalised or (written[0].isupper() and _is_nameable(word)):
            capitalised[written] = word
            if word not in names or starts[token.start()]:
                (names if _is_name(text, tokens, place, starts) else words).add(word)
            continue
        known.add(written)
        if written[0].isdecimal():
            numbers.add(_number(written))
        elif written in _SIGNS:
            words.add(_SIGNS[written])
        elif word in _NUMBERS:
            numbers.add(_NUMBERS[word])
        elif ord(word[:1] or " ") >= _UNSPACED:
            words.update(word[start : start + 2] for start in range(max(1, len(word) - 1)))
        elif word not in _STOP and len(word) > 1:
            words.add(word)
    return Terms(frozenset(numbers), frozenset(names), frozenset(words))


def _is_nameable(word: str) -> bool:
    """Return whether a capitalised word is a name, or at the beginning of a sentence a word."""
    return word not in _NUMBERS and word not in _STOP and len(word) > 1 and ord(word[0]) < _UNSPACED


def _number(written: str) -> str:
    """Return a number without thousands separators, zero decimals and leading zeros."""
    if not written.isdecimal():
        written = _ZERO_DECIMALS.sub("", _THOUSANDS.sub("", written)).replace(",", ".")
    return written.lstrip("0") or "0"


def _is_exact(tokens: list[re.Match[str]], place: int) -> bool:
    """Return whether a supporting page must contain this number of the claim."""
    number = _number(tokens[place][0])
    if number.isdecimal() and len(number) <= _MAX_COUNT_DIGITS and int(number) <= SMALL_COUNT:
        return False
    return not any(_word(token[0]) in _COMPARED for token in tokens[max(0, place - COMPARED_WORDS) : place])


def _written(tokens: list[re.Match[str]], place: int) -> set[str]:
    """Return the ways to write a number: 1,200,000 and 1.2 million."""
    number = _number(tokens[place][0])
    if number.count(".") > 1:
        return {number}  # a version, an address, a date
    follower = _word(tokens[place + 1][0]) if place + 1 < len(tokens) else ""
    value = float(number) * _SCALES.get(follower, 1)
    scaled = {value, *(value / scale for scale in _SCALE_VALUES if value >= scale)}
    return {number, *(f"{each:.10g}" for each in scaled)}


def _is_known(name: str, stems: frozenset[str]) -> bool:
    word = _word(name)
    if word.removesuffix("s") in _WEEKDAYS and word[:3] in stems:
        return True
    return _stem(word) in stems or word[:3] in _MONTHS or (name.isupper() and len(name) <= MAX_ABBREVIATION)


def _names(text: str, tokens: list[re.Match[str]]) -> Iterator[list[str]]:
    """Return the names in a text, each as a list of words."""
    run: list[str] = []
    end = 0
    starts = sentence_starts(text)
    for place, token in enumerate(tokens):
        if not run and not token[0][0].isupper():
            continue
        is_name = _is_name(text, tokens, place, starts) and _word(token[0]) not in _STOP
        is_near = token.end() - end <= _MAX_PARTICLES_CHARS
        if run and is_near and not token[0][0].isupper() and _PARTICLES.fullmatch(text[end : token.end()] + " "):
            continue
        if run and not (is_name and _PARTICLES.fullmatch(text[end : token.start()])):
            yield run
            run = []
        if is_name:
            run.append(token[0])
            end = token.end()
    if run:
        yield run


@lru_cache(maxsize=8192)
def _word(token: str) -> str:
    if token.isascii():
        return token.lower().removesuffix("'s")
    return confusable_skeleton(fold(token)).text.removesuffix("'s")


def _is_name(text: str, tokens: list[re.Match[str]], place: int, starts: bytearray) -> bool:
    """Return whether a token is capitalised, other than as the first word of a sentence. See ``sentence_starts``."""
    token = tokens[place]
    if not token[0][0].isupper():
        return False
    if not starts[token.start()]:
        return True
    follower = tokens[place + 1] if place + 1 < len(tokens) else None
    adjoins = follower is not None and text[token.end() : follower.start()] == " "
    return token[0][1:].lower() != token[0][1:] or (adjoins and follower is not None and follower[0][0].isupper())


def sentence_starts(text: str) -> bytearray:
    """Return a flag per character: whether a sentence, a quotation or a remark in brackets starts there."""
    starts = bytearray(len(text) + 1)
    starts[0] = True
    for before in _BEFORE_SENTENCE.finditer(text):
        starts[before.end()] = True
    return starts


def _stem(word: str) -> str:
    """Return the beginning of a word without common endings of number, case and tense."""
    return _ENDING.sub("", word)[:STEM_CHARS]


MAX_CHARS: Final = 600_000
"""The rest of a longer text is not searched. A text of this length takes about half a second of CPU time."""
MAX_CLAIM_CHARS: Final = 2_000
MAX_SENTENCES: Final = 3
MAX_PASSAGE_CHARS: Final = 500
_WEIGHT_OF_NUMBERS: Final = 2.0
_WEIGHT_OF_NAMES: Final = 1.5
_OTHER_NUMBER: Final = 0.5
"""Part of the weight of a missing number that a passage gets for another number: it may be the correct value."""
_LENGTH_PENALTY: Final = 0.12
"""Reduction of the score per further sentence."""

_LINE = re.compile(r"[^\n]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|[\u3002\uff01\uff1f]")
_WORD_END = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class ClosestPassage:
    """Range of a text. ``score`` orders passages of different pages for one claim."""

    start: int
    end: int
    score: float


@dataclass(slots=True)
class _Sentence:
    start: int
    end: int
    found: set[str]
    has_number: bool = False


def closest_passage(claim: str, text: str) -> ClosestPassage | None:
    """Return the passage of ``text`` that is closest to ``claim``, at most ``MAX_SENTENCES`` sentences.

    Returns None if no sentence shares a significant word with the claim. CPU-bound: call it in a thread.
    """
    weights = _weights(claim[:MAX_CLAIM_CHARS])
    numbers = {stem for stem in weights if stem[0].isdecimal()}
    sentences = list(_sentences(text[:MAX_CHARS], weights))
    value = _values(weights, [sentence.found for sentence in sentences])
    best: ClosestPassage | None = None
    for first, sentence in enumerate(sentences):
        if not sentence.found:
            continue
        found: set[str] = set()
        has_number = False
        for more, last in enumerate(sentences[first : first + MAX_SENTENCES]):
            if more and last.end - sentence.start > MAX_PASSAGE_CHARS:
                break
            found |= last.found
            has_number = has_number or last.has_number
            total = sum(value[stem] for stem in found)
            if has_number and not numbers & found:
                total += _OTHER_NUMBER * max((weights[number] for number in numbers), default=0.0)
            score = total * (1 - _LENGTH_PENALTY * more)
            if last.found and (best is None or score > best.score):
                best = ClosestPassage(sentence.start, last.end, score)
    return best


def absent_words(claim: str, passage: str) -> tuple[str, ...]:
    """Return the significant words, names and numbers of a claim, as written, that a passage does not contain.

    >>> absent_words("The 3 turbines supply 12,000 homes.", "Three turbines were built.")
    ('supply', '12,000', 'homes')
    """
    present = frozenset[str]().union(*map(stems_of_token, distinct_tokens(fold_marks(passage))))
    written = dict.fromkeys(_TOKEN.findall(fold_marks(claim[:MAX_CLAIM_CHARS])))
    return tuple(each for each in written if _is_significant(each) and not stems_of_token(each) & present)


def _is_significant(token: str) -> bool:
    word = _word(token)
    return token[0].isdecimal() or token in _SIGNS or (len(word) > 1 and word not in _STOP)


def relevance(claim: str, text: str, spans: Sequence[tuple[int, int]]) -> list[float]:
    """Return how relevant each range of a text is to a claim: the sum of the weights of the terms that both contain.

    CPU-bound: call it in a thread.
    """
    weights = _weights(claim[:MAX_CLAIM_CHARS])
    known: dict[str, frozenset[str]] = {}
    found: list[frozenset[str]] = []
    for start, end in spans:
        tokens = distinct_tokens(text[start:end])
        for token in tokens:
            if token not in known:
                known[token] = stems_of_token(token) & weights.keys()
        found.append(frozenset[str]().union(*(known[token] for token in tokens)))
    value = _values(weights, found)
    return [sum(value[stem] for stem in stems) for stems in found]


def _values(weights: Mapping[str, float], found: Sequence[Collection[str]]) -> dict[str, float]:
    """Return the value of each term: its weight, and more the fewer of the texts contain it."""
    frequency = Counter(stem for stems in found for stem in stems)
    return {
        stem: weight * math.log1p((len(found) - frequency[stem] + 0.5) / (frequency[stem] + 0.5))
        for stem, weight in weights.items()
    }


def _weights(claim: str) -> dict[str, float]:
    """Return the weight of each term of a claim, by stem."""
    found = terms(claim)
    weighted = ((found.words, 1.0), (found.names, _WEIGHT_OF_NAMES), (found.numbers, _WEIGHT_OF_NUMBERS))
    return {stem: weight for words, weight in weighted for word in words for stem in stems_of_token(word)}


def _sentences(text: str, wanted: dict[str, float]) -> Iterator[_Sentence]:
    """Yield the sentences of a text with the wanted stems in them."""
    known: dict[str, tuple[frozenset[str], bool]] = {}
    for start, end in _spans(text):
        sentence = _Sentence(start, end, set())
        for token in tokens_of(text, start, end):
            if token not in known:
                stems = stems_of_token(token)
                known[token] = stems & wanted.keys(), token[0].isdecimal()
            found, is_number = known[token]
            if found:
                sentence.found |= found
            if is_number:
                sentence.has_number = True
        yield sentence


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the sentences. Long ones are split between words."""
    for line in _LINE.finditer(text):
        start = line.start()
        ends = [end.end() for end in _SENTENCE_END.finditer(text, start, line.end())]
        for end in (*ends, line.end()):
            while end - start > MAX_PASSAGE_CHARS:
                space = _WORD_END.search(text, start + MAX_PASSAGE_CHARS // 2, start + MAX_PASSAGE_CHARS)
                cut = space.end() if space else start + MAX_PASSAGE_CHARS
                yield start, cut
                start = cut
            if text[start:end].strip():
                yield start, start + len(text[start:end].rstrip())
            start = end
