"""Detection of prompt injection: instructions to the judge, imitated prompts and claimed verdicts. Pure functions.

A detected passage stays in the text and is shown to the judge inside its block. It is not accepted as evidence, and a
verdict that saw it needs better grounds (``judges.grounding.support``). Detection matches known wordings, which an
attacker who knows them can avoid. It is one of several defences; see docs/decisions for its limits.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from judges.grounding.confusables import confusable_skeleton
from judges.grounding.folding import FoldedText, fold
from judges.grounding.injection_patterns import EMPTY_ANNOUNCEMENT, wordings
from judges.grounding.injection_signals import (
    REQUIRED_COMPANIONS,
    SINGLE_SENTENCE_SIGNS,
    SUFFICIENT_SIGNS,
    InjectionSign,
)
from judges.grounding.pattern_search import PatternSearch

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


@dataclass(frozen=True, slots=True)
class _Hit:
    sign: InjectionSign
    start: int
    end: int


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


def _hits(plain: FoldedText, text: str) -> list[_Hit]:
    """Return all relevant signs, sorted. Supporting signs are only searched near signs that require them."""
    hits = [
        hit for start in range(0, len(plain.text), STRIDE_CHARS) for hit in _found(_searches()[0], plain, text, start)
    ]
    anchors = sorted(hit.start for hit in hits if hit.sign in REQUIRED_COMPANIONS)
    for start, end in _windows(anchors):
        hits += _found(_searches()[1], plain, text, start, end)
    return sorted(set(hits), key=lambda hit: (hit.start, hit.end, hit.sign))


def _found(search: PatternSearch, plain: FoldedText, text: str, start: int, end: int | None = None) -> Iterator[_Hit]:
    """Return hits that start in one stretch. Stretches are short so that other threads can run in between."""
    end = start + STRIDE_CHARS if end is None else end
    for hit in search.matches(plain.text, start, end, reach=REACH_CHARS):
        if not hit.wording.at_start or _starts_here(plain, text, hit.start):
            yield _Hit(hit.wording.sign, hit.start, hit.end)


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


def _groups(hits: list[_Hit]) -> Iterator[list[_Hit]]:
    """Group hits that are close to each other, in order. The length of a group is limited."""
    group: list[_Hit] = []
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
