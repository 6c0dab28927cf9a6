"""Negations in the part of a sentence that a quote leaves out.

``negation.toml`` lists the words. A negation outside of the quote counts unless punctuation shows that it belongs to
another clause that does not govern the quoted one. In doubt it counts: the judge is then asked for the whole sentence.

The clauses are told apart as follows. The mark before the clause can be a comma, a semicolon, a dash or a bracket.

- Behind a conjunction of contrast ("but"), a clause is never governed by an earlier negation, unless that negation
  governs a statement ("it is not true that A, but B").
- Behind a semicolon, one dash, a comma with "and", or (Chinese) a comma, it is not governed by a plain negation.
- A negation within a subordinate clause or brackets does not govern the rest of the sentence.
- Behind the quote, a negation needs a clause of its own that is long enough not to refer to the quote ("is not so").
- Denials ("denied", "untrue", "not true") concern statements before or behind them in any clause, so only a conjunction
  of contrast behind them sets the quote apart.
- Also not governed by a plain negation: a relative clause behind a comma, in languages in which the comma shows that it
  is an addition, and a clause before a colon. What is behind a colon can be governed.
- A pair of dashes and a pair of commas without a conjunction set nothing apart.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Final, TypeAlias

from cache.page_text.sentences import sentence_around
from judges.grounding.folding import UNSPACED, FoldedText, fold

Span: TypeAlias = tuple[int, int]
_Languages: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Possible languages, and the most probable ones."""

MIN_CLAUSE_WORDS: Final = 5
"""A shorter clause behind a quote can refer to it."""
MAX_ELLIPTIC_WORDS: Final = 5
"""Maximum words of a clause that ends in a negation and refers to the quote: "das tut er aber nicht"."""
MIN_CLAUSE_CHARS: Final = 6
"""Minimum characters of a clause in a script without word spaces."""
_MIN_BRACKET_WORDS: Final = 5
MAX_WORD_CHARS: Final = 60
"""Longer words are not looked up."""
_COLON, _COMMA, _DASH, _SEMICOLON, _OPEN, _CLOSE = ":,-;()"
_SEPARATORS: Final = (_COMMA, _DASH, _SEMICOLON)
_KINDS: Final = ("always", "own", "denial", "truth", "but", "and", "sub", "aside", "that", "before")

_UNSPACED_KIND: Final = frozenset({"unspaced"})
_KANA = re.compile("[\u3041-\u30ff]")
_THAI = re.compile("[\u0e00-\u0e7f]")
_CLITIC = re.compile(r"\A\w(?=-)")
"""Word of one letter before a hyphen, for example in Romanian "n-au". Other compounds are words of their own."""
_NUMBER = re.compile(r"\.? ?\d")
"""What follows "No" in "No. 5"."""
_MARK = re.compile(
    r"(?P<number>\d[\d.,:']*\d)|(?P<comma>[,\u060c\u3001])|(?P<semicolon>[;\u061b])|(?P<colon>:)|(?P<open>[(\[])"
    r"|(?P<close>[)\]])|(?P<dash>-+)"
)
_MARK_KINDS = {
    "comma": _COMMA, "semicolon": _SEMICOLON, "colon": _COLON, "open": _OPEN, "close": _CLOSE, "dash": _DASH
}  # fmt: skip
_TOKEN = re.compile(
    r"[^\s!-&(-,./:-@\[-^{-~\u00a0-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u2013-\u206f\u3000-\u303f\u060c\u061b"
    r"\u061f\u06d4\u0964\u0965]+"
)


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    """Words of one language, folded. ``anywhere`` finds all of them in a script without word spaces."""

    common: frozenset[str]
    letters: tuple[str, ...]
    exempt: frozenset[str]
    exact: Mapping[str, frozenset[str]]
    patterns: Mapping[str, re.Pattern[str]]
    anywhere: re.Pattern[str]

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> _Language:
        words = {kind: _folded(entries.get(kind, "")) for kind in (*_KINDS, "except")}
        everything = sorted({word for each in words.values() for word in each}, key=len, reverse=True)
        letters = (fold(letter).text for letter in entries.get("letters", ""))
        return cls(
            common=frozenset(_folded(entries.get("common", ""))),
            letters=tuple(letter for letter in letters if not letter.isascii()),
            exempt=frozenset(words["except"]),
            exact={kind: frozenset(word for word in words[kind] if "*" not in word) for kind in words},
            patterns={
                kind: re.compile(
                    "|".join(re.escape(word).replace(r"\*", ".*") for word in each if "*" in word) or "(?!)"
                )
                for kind, each in words.items()
            },
            anywhere=re.compile("|".join(map(re.escape, everything)) or "(?!)"),
        )

    def has(self, kind: str, parts: Iterable[str]) -> bool:
        """Return whether one of the parts of a word is of a kind."""
        return any(
            part in self.exact[kind] or (self.patterns[kind].fullmatch(part) is not None and not self._is_exempt(part))
            for part in parts
        )

    def kinds_of(self, word: str) -> frozenset[str]:
        found = {kind for kind in _KINDS if word in self.exact[kind]}
        return frozenset(found - {"always"} | ({"negation"} if "always" in found else set()))

    def _is_exempt(self, word: str) -> bool:
        return word in self.exempt or self.patterns["except"].fullmatch(word) is not None


def leaves_out_negation(page: FoldedText, spans: Sequence[Span]) -> bool:
    """Return whether the sentences of quoted ``spans``, in folded text and in order, negate what the spans say.

    Reads the sentences around each span, which are bounded (``cache.page_text.sentences.WINDOW``).
    """
    regions: list[tuple[int, int, list[Span]]] = []
    for span in spans:
        start, end = sentence_around(page.original, *page.span(*span))
        low, high = bisect_left(page.starts, start), bisect_left(page.starts, end)
        if regions and low < regions[-1][1]:
            before, until, quoted = regions[-1]
            regions[-1] = before, max(until, high), [*quoted, span]
        else:
            regions.append((low, high, [span]))
    return any(_Sentence(page, low, high, quoted).is_negated() for low, high, quoted in regions)


class _Sentence:
    """Range of a folded text with the quotes in it."""

    def __init__(self, page: FoldedText, low: int, high: int, quoted: Sequence[Span]) -> None:
        self._text = page.text[low:high]
        self._quoted = [(start - low, end - low) for start, end in quoted]
        self._page, self._low = page, low
        self.marks: list[tuple[int, str]] = []
        self.words: list[_Word] = []

    def is_negated(self) -> bool:
        before, behind = self._text[: self._quoted[0][0]], self._text[self._quoted[-1][1] :]
        if len(self._quoted) == 1 and not before.strip() and not behind.strip(' .!?"'):
            return False
        self.words = list(_words(self._text, _languages_of(self._text)))
        negations = [word for word in self.words if self._is_left_out(word) and word.kinds & {"negation", "denial"}]
        if not negations:
            return False
        self.marks = [
            (match.start(), _MARK_KINDS[match.lastgroup or ""])
            for match in _MARK.finditer(self._text)
            if match.lastgroup != "number" and self._is_mark(match)
        ]
        return any(self._counts(negation) for negation in negations)

    def _is_mark(self, match: re.Match[str]) -> bool:
        """Return whether a mark separates clauses: hyphens do not, unless there are spaces around them."""
        if match.lastgroup != "dash":
            return True
        is_spaced = {self._text[match.start() - 1 : match.start()], self._text[match.end() : match.end() + 1]} == {" "}
        return is_spaced or self._page.original[self._page.starts[self._low + match.start()]] == "\u2014"

    def _is_left_out(self, word: _Word) -> bool:
        return all(word.end <= start or end <= word.start for start, end in self._quoted)

    def _counts(self, negation: _Word) -> bool:
        """Return whether a negation concerns the nearest quote before or behind it."""
        after = next((span for span in self._quoted if span[0] >= negation.end), None)
        before = next((span for span in reversed(self._quoted) if span[1] <= negation.start), None)
        return (after is not None and self._concerns_later(negation, after)) or (
            before is not None and self._concerns_earlier(negation, before)
        )

    def _marks_in(self, start: int, end: int) -> list[tuple[int, str]]:
        return self.marks[bisect_left(self.marks, (start,)) : bisect_left(self.marks, (end,))]

    def _words_in(self, start: int, end: int) -> list[_Word]:
        return self.words[self._word_at(start) : self._word_at(end)]

    def _word_at(self, place: int) -> int:
        """Return the index of the first word at or behind a position."""
        return bisect_left(self.words, place, key=lambda word: word.start)

    def _clause(self, place: int) -> Span:
        """Return the range between the marks around a position."""
        following = bisect_left(self.marks, (place,))
        start = self.marks[following - 1][0] + 1 if following else 0
        return start, self.marks[following][0] if following < len(self.marks) else len(self._text)

    def _is_denial(self, negation: _Word) -> bool:
        """Return whether a negation concerns a statement: "denied", or "not" in one clause with "true"."""
        clause = self._words_in(*self._clause(negation.start))
        return "denial" in negation.kinds or any("truth" in word.kinds for word in clause)

    def _begins_with(self, place: int, kind: str, *, within: int = 1) -> bool:
        """Return whether one of the first words behind a mark is of a kind."""
        first = self._word_at(place + 1)
        return any(kind in word.kinds for word in self.words[first : first + within])

    def _is_subordinate(self, negation: _Word) -> bool:
        """Return whether the clause of a negation begins with a subordinating word, perhaps behind a preposition."""
        return self._begins_with(self._clause(negation.start)[0] - 1, "sub", within=2)

    def _is_contrast(self, mark: int) -> bool:
        """Return whether a conjunction of contrast is behind a mark, perhaps as the second word, or ends before it."""
        before = self._word_at(mark) - 1
        ends = before >= 0 and "before" in self.words[before].kinds
        return ends or self._begins_with(mark, "but", within=2)

    def _bracket(self, place: int) -> Span | None:
        """Return the innermost brackets around a position."""
        opened: list[int] = []
        for mark, kind in self.marks:
            if kind == _OPEN:
                opened.append(mark)
            elif kind == _CLOSE and opened:
                start = opened.pop()
                if start < place < mark:
                    return start, mark
        return None

    def _concerns_later(self, negation: _Word, quote: Span) -> bool:
        """Return whether a negation concerns a quote behind it."""
        marks = self._marks_in(negation.end, quote[0])
        if not marks or any(mark == _COLON for _, mark in marks):
            return True
        # The first word of the quote can be the conjunction.
        is_governed = any("that" in word.kinds for word in self._words_in(negation.end, quote[0] + 1))
        separators = [(at, kind) for at, kind in marks if kind in _SEPARATORS]
        is_contrast = bool(separators) and self._is_contrast(separators[-1][0])
        if self._is_denial(negation):
            return is_governed or not is_contrast
        is_answer = negation is self.words[0] and marks[0] == (negation.end, _COMMA)  # "No, ..."
        if is_contrast or is_answer:
            return False
        bracket, around = self._bracket(negation.start), self._bracket(quote[0])
        if bracket is not None and bracket[1] <= quote[0]:
            return len(self._words_in(*bracket)) < MIN_CLAUSE_WORDS
        if self._is_subordinate(negation) and marks[0][1] in _SEPARATORS:
            return False
        if is_governed:
            return True
        if around is not None and negation.end <= around[0] and around[1] >= quote[1]:
            return False
        kinds = [kind for _, kind in marks]
        if _SEMICOLON in kinds or ("unspaced" in negation.kinds and _COMMA in kinds):
            return False
        if kinds.count(_DASH) == 1:
            return kinds[0] == _DASH and not self._words_in(negation.end, marks[0][0])
        if self._begins_with(marks[-1][0], "aside"):
            return False
        return not (kinds == [_COMMA] and self._begins_with(marks[0][0], "and"))

    def _concerns_earlier(self, negation: _Word, quote: Span) -> bool:
        """Return whether a negation concerns a quote before it."""
        marks = self._marks_in(quote[1], negation.start)
        if not marks or self._is_denial(negation):
            return True
        bracket = self._bracket(negation.start)
        if bracket is not None and bracket[0] >= quote[1]:
            return len(self._words_in(*bracket)) < _MIN_BRACKET_WORDS
        start, end = self._clause(negation.start)
        words = self._words_in(start, end)
        if "unspaced" in negation.kinds:
            if end - start < MIN_CLAUSE_CHARS:
                return True
        else:
            own = [word for word in words if not word.kinds & {"but", "and"}]
            if len(own) < MIN_CLAUSE_WORDS or (own[-1] is negation and len(own) <= MAX_ELLIPTIC_WORDS):
                return True
        kinds, last = [kind for _, kind in marks], marks[-1][0]
        around = self._bracket(quote[0])
        if around is not None and quote[1] <= around[1] <= negation.start:
            return False
        is_apart = kinds[-1] in (_COLON, _SEMICOLON) or kinds.count(_DASH) == 1
        if is_apart or ("unspaced" in negation.kinds and _COMMA in kinds):
            return False
        is_joined = self._begins_with(last, "and") or self._begins_with(last, "sub", within=3)
        return not (is_joined or any(self._is_contrast(at) for at, _ in marks))


def _words(text: str, languages: _Languages) -> Iterator[_Word]:
    """Yield the words of a text with their kinds, in order. Scripts without word spaces are split at known words."""
    for match in _TOKEN.finditer(text):
        if UNSPACED.search(match[0]):
            yield from _unspaced_words(match[0], match.start())
        elif match[0] != "no" or not _NUMBER.match(text, match.end()):
            yield _Word(match.start(), match.end(), _kinds(match[0], languages))


def _unspaced_words(token: str, offset: int) -> Iterator[_Word]:
    lexicon = _lexicon()["ja" if _KANA.search(token) else "th" if _THAI.search(token) else "zh"]
    at = 0
    for match in lexicon.anywhere.finditer(token):
        if match.start() > at:
            yield _Word(offset + at, offset + match.start(), _UNSPACED_KIND)
        kinds = _UNSPACED_KIND if match[0] in lexicon.exempt else lexicon.kinds_of(match[0]) | _UNSPACED_KIND
        yield _Word(offset + match.start(), offset + match.end(), kinds)
        at = match.end()
    if at < len(token):
        yield _Word(offset + at, offset + len(token), _UNSPACED_KIND)


def _languages_of(text: str) -> _Languages:
    """Return the languages that a sentence can be in, and those that it most probably is in, by function words.

    All, if there are none.
    """
    lexicon = _lexicon()
    scores = Counter(name for token in set(_TOKEN.findall(text)) for name in _by_common_word().get(token, ()))
    scores.update(name for name, language in lexicon.items() if any(letter in text for letter in language.letters))
    best = max(scores.values(), default=0)
    if not best:
        return tuple(lexicon), tuple(lexicon)
    return (
        tuple(name for name, score in scores.items() if 2 * score >= best),
        tuple(name for name, score in scores.items() if score == best),
    )


@lru_cache(maxsize=50_000)
def _kinds(token: str, languages: _Languages) -> frozenset[str]:
    """Return what a word can be. Conjunctions are looked up in the most probable languages only."""
    if len(token) > MAX_WORD_CHARS:
        return frozenset()
    lexicon, (possible, probable) = _lexicon(), languages
    parts = {token, *token.split("'"), *_CLITIC.findall(token)}
    found = {"negation" for language in lexicon.values() if language.has("always", parts)}
    for name in possible:
        language = lexicon[name]
        if language.has("own", parts):
            found.add("negation")
        found |= {kind for kind in ("denial", "truth", "that") if language.has(kind, parts)}
    found |= {
        kind for name in probable for kind in ("but", "and", "sub", "aside", "before") if lexicon[name].has(kind, parts)
    }
    return frozenset(found)


@cache
def _lexicon() -> dict[str, _Language]:
    written = tomllib.loads(resources.files("judges.grounding").joinpath("negation.toml").read_text("utf-8"))
    return {name: _Language.of(entries) for name, entries in written.items()}


@cache
def _by_common_word() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, language in _lexicon().items():
        for word in language.common:
            names.setdefault(word, []).append(name)
    return names


def _folded(written: str) -> list[str]:
    return [fold(word).text for word in written.split()]
