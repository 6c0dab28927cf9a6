"""Search for the passage of a page that is closest to a claim, for readers of a refuted claim.

Code alone finds it, by the words, names and numbers that a passage shares with the claim (BM25 without term frequency:
rare terms count more). It shows what the page says on the subject; it is no ground of a verdict.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from judges.grounding.term_overlap import distinct_tokens, stems_of_token, terms, tokens_of

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
