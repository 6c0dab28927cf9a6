"""Detection of prompt injection: instructions to the judge, imitated prompts and claimed verdicts. Pure functions.

A detected passage stays in the text and is shown to the judge inside its block. It is not accepted as evidence, and a
verdict that saw it needs better grounds (``judges.grounding.support``). Detection matches known wordings, which an
attacker who knows them can avoid. It is one of several defences; see docs/decisions for its limits.

Many patterns are searched at once. Each pattern is only tried at words with which it can begin, because trying every
pattern at every position would dominate the time spent on a page.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from judges.grounding.folding import FoldedText, confusable_skeleton, fold
from judges.grounding.injection_patterns import (
    EMPTY_ANNOUNCEMENT,
    REQUIRED_COMPANIONS,
    SINGLE_SENTENCE_SIGNS,
    SUFFICIENT_SIGNS,
    InjectionSign,
    SignPattern,
    wordings,
)

_LETTERS = re.compile(r"[^\W\d_]+")
_QUOTE: Final = "[\\\"']?"
"""Optional quotation mark before the first word of a pattern."""


class Hit(NamedTuple):
    """Match of a wording at ``text[start:end]``."""

    start: int
    end: int
    wording: SignPattern

    @property
    def sign(self) -> InjectionSign:
        return self.wording.sign


class _Candidate(NamedTuple):
    """Wording to try. ``number`` is its index. ``may_quote``: a quotation mark directly before belongs to the match."""

    number: int
    wording: SignPattern
    may_quote: bool


class PatternSearch:
    """Searches texts for a fixed set of wordings, with the same results as each pattern on its own."""

    def __init__(self, wordings: Iterable[SignPattern]) -> None:
        self._anywhere: list[SignPattern] = []
        at_words: dict[str, list[_Candidate]] = {}
        inside: dict[str, list[_Candidate]] = {}
        for number, wording in enumerate(wordings):
            source = wording.pattern.pattern
            known = beginnings(source)
            if known is None:
                self._anywhere.append(wording)
                continue
            openings = at_words if known.at_words else inside
            for letters in known.letters:
                openings.setdefault(letters, []).append(_Candidate(number, wording, source.startswith(_QUOTE)))
        self._openings = [_Openings(r"\b", at_words), _Openings("", inside)]

    def matches(self, text: str, start: int, end: int, *, reach: int) -> Iterator[Hit]:
        """Return every hit that starts in ``text[start:end]``. It may extend ``reach`` characters beyond ``end``."""
        for wording in self._anywhere:
            for hit in wording.pattern.finditer(text, start, end + reach):
                if hit.start() >= end:
                    break
                if wording.context_allows(text, hit.start()):
                    yield Hit(*hit.span(), wording)
        for openings in self._openings:
            yield from openings.matches(text, start, end, end + reach)


class _Openings:
    """Combined search for the first letters of many wordings."""

    def __init__(self, before: str, by_letters: Mapping[str, Sequence[_Candidate]]) -> None:
        self._pattern = re.compile(before + _any_of(by_letters)) if by_letters else None
        # The pattern finds the longest letters at a position. Their prefixes match there as well.
        self._to_try = {
            prefix: tuple(
                {each for letters in by_letters if prefix.startswith(letters) for each in by_letters[letters]}
            )
            for prefix in by_letters
        }

    def matches(self, text: str, start: int, end: int, limit: int) -> Iterator[Hit]:
        if self._pattern is None:
            return
        free_from: dict[int, int] = {}
        opening = self._pattern.search(text, start, limit)
        while opening is not None and (place := opening.start()) < end:
            for number, wording, may_quote in self._to_try[opening[0]]:
                free = free_from.get(number, start)
                if place < free:
                    continue
                with_quote = may_quote and place > free and text[place - 1] in "\"'"
                hit = wording.pattern.match(text, place - 1 if with_quote else place, limit)
                if hit is not None and wording.context_allows(text, hit.start()):
                    free_from[number] = hit.end()
                    yield Hit(*hit.span(), wording)
            opening = self._pattern.search(text, place + 1, limit)


class Beginnings(NamedTuple):
    """Letters that a match can begin with. ``at_words``: only at the start of a word."""

    letters: frozenset[str]
    at_words: bool


def beginnings(pattern: str) -> Beginnings | None:
    r"""Determine from the source of a pattern how its matches can begin; None if that is not evident.

    >>> known = beginnings(r"\b(?:ignor(?:e|ing)|(?:do not|stop) x|claims?)\b.*")
    >>> known and (sorted(known.letters), known.at_words)
    (['claim', 'do', 'ignor', 'stop'], True)
    >>> beginnings(r"</claim>") is None
    True
    """
    alternatives = [alternative.removeprefix(_QUOTE) for alternative in _alternatives(pattern)]
    at_words = all(option.startswith(r"\b") for option in alternatives)
    if not at_words and any(option.startswith(r"\b") for option in alternatives):
        return None
    known = [_first_letters(option.removeprefix(r"\b")) for option in alternatives]
    letters = frozenset(each for option in known if option is not None for each in option)
    return Beginnings(letters, at_words) if None not in known else None


def _first_letters(pattern: str) -> set[str] | None:
    """Return the literal first letters of a pattern without top-level alternatives, for all its ways to begin."""
    if pattern.startswith("(?:"):
        inner, rest = _group(pattern)
        alternatives = [_first_letters(alternative) for alternative in _alternatives(inner)]
        if rest[:1] in {"?", "*"}:
            alternatives.append(_first_letters(rest[1:].removeprefix("?")))
        known = [option for option in alternatives if option is not None]
        return {letters for option in known for letters in option} if len(known) == len(alternatives) else None
    letters = _LETTERS.match(pattern)
    if letters is None:
        return None
    is_last_optional = pattern[letters.end() : letters.end() + 1] in {"?", "*", "{"}
    required = letters[0][:-1] if is_last_optional else letters[0]
    return {required} if required else None


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars outside of groups."""
    parts = [""]
    depth = 0
    for piece in _pieces(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _group(pattern: str) -> tuple[str, str]:
    """Return the content of the group at the start of a pattern, and the rest of the pattern."""
    depth = place = 0
    for piece in _pieces(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        place += len(piece)
        if depth == 0:
            break
    return pattern[len("(?:") : place - 1], pattern[place:]


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _pieces(pattern: str) -> Iterator[str]:
    """Return the characters of a pattern, with escapes and character classes as one piece."""
    return (piece[0] for piece in _PIECE.finditer(pattern))


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for the longest of these words at a position, with common prefixes factored out."""
    by_letter: dict[str, set[str]] = {}
    for word in words:
        by_letter.setdefault(word[:1], set()).add(word[1:])
    may_end = by_letter.pop("", None) is not None
    alternatives = [letter + (_any_of(rest) if rest != {""} else "") for letter, rest in sorted(by_letter.items())]
    if not alternatives:
        return ""
    whole = alternatives[0] if len(alternatives) == 1 and not may_end else f"(?:{'|'.join(alternatives)})"
    return f"{whole}?" if may_end else whole


MAX_SCAN_CHARS: Final = 500_000
NEAR_CHARS: Final = 200
"""Signs at most this far apart form one passage."""
REACH_CHARS: Final = 500
"""Maximum distance of a passage beyond its first and last sign, and maximum length of a sign."""
STRIDE_CHARS: Final = 20_000
PRIMARY_SIGNS: Final = SUFFICIENT_SIGNS | REQUIRED_COMPANIONS.keys()
FLOOD_TIMES: Final = 20
FLOOD_SHARE: Final = 0.3
"""A sentence repeated this often that makes up this fraction of a text is a flood and proves nothing."""
MIN_ENCODED_CHARS: Final = 24
MAX_ENCODED: Final = 100

_QUOTED = re.compile(r"\"[^\"]{3,600}\"|(?<![\w'])'[^']{3,600}'(?![\w'])")
_REVERSED = re.compile("[\u202e\u202d]([^\u202c\u2069\n]{8,2000})")
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{{{MIN_ENCODED_CHARS},4000}}={{0,2}}")
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_ROTATED_WORDS = tuple(word.translate(_ROT13) for word in ("ignor", "regard", "forget", "support", "verif", "mark"))
_SENTENCE_END = re.compile(
    r"[.!?\u3002\uff01\uff1f][\"')\]\u201d\u2019]*(?=\s)|[\u3002\uff01\uff1f]|(?<=[:;.!?])\s*\n|\n\s*\n"
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_CLAIM = re.compile(r"\b(?:claim|statement|assertion|behauptung|aussage|affirmation|affermazione|afirmaci)|主张|陈述")
"""What only text for the judge calls the sentence that it checks."""
_NOT_WORD = re.compile(r"\W*")
_BEFORE_START = re.compile(r"(?:^|[\n.!?:;>\])}\"'*#|-])\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedInstruction:
    """Injected instruction: the passage ``text[start:end]`` of the scanned text.

    ``quoted``: it occurs only in quotation marks, for example in an article about prompt injection.
    """

    start: int
    end: int
    signs: frozenset[InjectionSign]
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Result of a scan.

    ``is_empty_announcement``: the whole text only announces an answer, or has no words. ``is_flood``: one repeated
    sentence makes up much of the text.
    """

    orders: tuple[InjectedInstruction, ...] = ()
    is_empty_announcement: bool = False
    is_flood: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether anything found casts doubt on a verdict that used this text."""
        return bool(self.orders) or self.is_empty_announcement or self.is_flood

    @property
    def has_unquoted_injection(self) -> bool:
        """Whether the text contains an injected instruction outside of quotation marks."""
        return any(not order.quoted for order in self.orders)


@functools.cache
def _searches() -> tuple[PatternSearch, PatternSearch]:
    """Return the searches for primary signs and for the others."""
    return (
        PatternSearch(wording for wording in wordings() if wording.sign in PRIMARY_SIGNS),
        PatternSearch(wording for wording in wordings() if wording.sign not in PRIMARY_SIGNS),
    )


def compile_wordings() -> None:
    """Compile the patterns, so that the next scan does not. The first call takes 100 ms; call it in a thread."""
    _searches()


def are_wordings_compiled() -> bool:
    """Return whether ``compile_wordings`` was called."""
    return _searches.cache_info().currsize > 0


def scan(text: str, plain: FoldedText | None = None) -> Scan:
    """Scan a text. Text beyond 500,000 characters is not scanned.

    ``plain`` is the confusables skeleton of the text, if already computed. Takes some hundred milliseconds for a long
    text; call it in a thread.
    """
    if plain is None or len(text) > MAX_SCAN_CHARS:
        text = text[:MAX_SCAN_CHARS]
        plain = confusable_skeleton(fold(text))
    orders = [*_orders(plain, text), *_reversed(text), *_decoded(text), *_rotated(plain, text)]
    opener = 0 < len(text) <= NEAR_CHARS and EMPTY_ANNOUNCEMENT.fullmatch(plain.text.strip()) is not None
    in_order = sorted(set(orders), key=lambda order: (order.start, order.end))
    return Scan(orders=tuple(in_order), is_empty_announcement=opener, is_flood=_is_flood(plain.text))


def scan_url(url: str) -> Scan:
    """Scan the words of a URL, with its separators replaced by spaces."""
    return scan(re.sub(r"%20|[+_/?&=#.-]+", " ", url.partition("://")[2]))


def _is_flood(plain: str) -> bool:
    sentences = Counter(re.split(r"(?<=[.!?])\s+", plain))
    return any(is_flood(times, len(sentence), len(plain)) for sentence, times in sentences.most_common(5))


def is_flood(times: int, chars: int, of_chars: int) -> bool:
    """Return whether a passage of ``chars`` characters that occurs ``times`` times floods a text of ``of_chars``."""
    return times >= FLOOD_TIMES and times * chars >= FLOOD_SHARE * of_chars


def _orders(plain: FoldedText, text: str) -> Iterator[InjectedInstruction]:
    """Return passages whose signs together form an instruction, with their sentence or paragraph."""
    quoted_spans: list[tuple[int, int]] | None = None
    for group in _groups(_hits(plain, text)):
        signs = frozenset(hit.sign for hit in group)
        if not _is_order(signs):
            continue
        first, last = group[0].start, max(hit.end for hit in group)
        if quoted_spans is None:  # only computed if needed: most texts have none
            quoted_spans = [match.span() for match in _QUOTED.finditer(plain.text)]
        place = bisect_right(quoted_spans, (first, len(plain.text))) - 1
        if place >= 0 and quoted_spans[place][1] >= last and _has_context(plain.text, *quoted_spans[place]):
            start, end = plain.span(*quoted_spans[place])
            yield InjectedInstruction(start=start, end=end, signs=signs, quoted=True)
        else:
            start, end = plain.span(first, last)
            names_claim = _CLAIM.search(plain.text, first, last) is not None
            alone = not names_claim and any(signs <= few for few in SINGLE_SENTENCE_SIGNS)
            yield InjectedInstruction(
                start=_back(text, start, whole_paragraph=not alone),
                end=_ahead(text, end, whole_paragraph=not alone),
                signs=signs,
            )


def _hits(plain: FoldedText, text: str) -> list[Hit]:
    """Return all relevant signs, sorted. Supporting signs are only searched near signs that require them."""
    hits = [
        hit for start in range(0, len(plain.text), STRIDE_CHARS) for hit in _found(_searches()[0], plain, text, start)
    ]
    anchors = sorted(hit.start for hit in hits if hit.sign in REQUIRED_COMPANIONS)
    for start, end in _windows(anchors):
        hits += _found(_searches()[1], plain, text, start, end)
    return sorted(set(hits), key=lambda hit: (hit.start, hit.end, hit.sign))


def _found(search: PatternSearch, plain: FoldedText, text: str, start: int, end: int | None = None) -> Iterator[Hit]:
    """Return hits that start in one stretch. Stretches are short so that other threads can run in between."""
    end = start + STRIDE_CHARS if end is None else end
    for hit in search.matches(plain.text, start, end, reach=REACH_CHARS):
        if not hit.wording.at_start or _starts_here(plain, text, hit.start):
            yield hit


def _windows(places: list[int]) -> Iterator[tuple[int, int]]:
    """Return disjoint stretches around these places, in order."""
    done = 0
    for place in places:
        start, end = max(done, place - NEAR_CHARS), place + REACH_CHARS
        if start < end:
            yield start, end
            done = end


def _starts_here(plain: FoldedText, text: str, place: int) -> bool:
    start = plain.starts[place]
    return _BEFORE_START.search(text[max(0, start - 8) : start]) is not None


def _groups(hits: list[Hit]) -> Iterator[list[Hit]]:
    """Group hits that are close to each other, in order. The length of a group is limited."""
    group: list[Hit] = []
    end = 0
    for hit in hits:
        if group and (hit.start > end + NEAR_CHARS or hit.start > group[0].start + REACH_CHARS):
            yield group
            group = []
        group.append(hit)
        end = max(end, hit.end) if len(group) > 1 else hit.end
    if group:
        yield group


def _is_order(signs: frozenset[InjectionSign]) -> bool:
    return bool(signs & SUFFICIENT_SIGNS) or any(
        signs & REQUIRED_COMPANIONS[sign] for sign in signs if sign in REQUIRED_COMPANIONS
    )


def _has_context(plain: str, start: int, end: int) -> bool:
    """Return whether words surround a quotation, as in a report about it."""
    before, after = plain[max(0, start - 120) : start], plain[end : end + 120]
    return len(re.findall(r"\w+", f"{re.split('[.!?]', before)[-1]} {re.split('[.!?]', after)[0]}")) >= 4


def _back(text: str, start: int, *, whole_paragraph: bool) -> int:
    """Return the start of the sentence at ``start``, or of its paragraph."""
    floor = max(0, start - REACH_CHARS)
    first_word = _NOT_WORD.match(text, start, start + NEAR_CHARS)
    place = start if first_word is None else first_word.end()
    paragraph = max((match.end() for match in _PARAGRAPH.finditer(text, floor, place)), default=floor)
    if whole_paragraph:
        return min(start, paragraph)
    return min(start, max((match.end() for match in _SENTENCE_END.finditer(text, paragraph, place)), default=paragraph))


def _ahead(text: str, end: int, *, whole_paragraph: bool) -> int:
    """Return the end of the sentence at ``end``, or of its paragraph."""
    ceiling = min(len(text), end + REACH_CHARS)
    paragraph = _PARAGRAPH.search(text, end, ceiling)
    limit = ceiling if paragraph is None else paragraph.start()
    sentence = None if whole_paragraph else _SENTENCE_END.search(text, max(0, end - 1), limit)
    return limit if sentence is None else sentence.end()


def _reversed(text: str) -> Iterator[InjectedInstruction]:
    """Return instructions written backwards after a bidi override, which displays them forwards."""
    for match in _REVERSED.finditer(text):
        yield from _encoded_order(match.start(), match.end(), match[1][::-1])


def _decoded(text: str) -> Iterator[InjectedInstruction]:
    """Return instructions in base64."""
    for count, match in enumerate(_ENCODED.finditer(text)):
        if count >= MAX_ENCODED:
            return
        written = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            hidden = base64.b64decode(written + "=" * (-len(written) % 4), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        yield from _encoded_order(match.start(), match.end(), hidden)


def _rotated(plain: FoldedText, text: str) -> Iterator[InjectedInstruction]:
    """Return instructions in ROT13. Only the strongest signs are searched."""
    if not any(word in plain.text for word in _ROTATED_WORDS):
        return
    decoded = FoldedText(plain.text.translate(_ROT13), plain.starts, plain.original)
    for order in _orders(decoded, text):
        if order.signs & {InjectionSign.OVERRIDE, InjectionSign.ORDER}:
            yield order


def _encoded_order(start: int, end: int, hidden: str) -> Iterator[InjectedInstruction]:
    """Return ``text[start:end]`` as an instruction if ``hidden``, its decoded content, is one."""
    signs = frozenset(sign for order in _orders(confusable_skeleton(fold(hidden)), hidden) for sign in order.signs)
    if signs:
        yield InjectedInstruction(start=start, end=end, signs=signs)
