"""Finds text that speaks to whoever checks an answer: orders, imitated prompts, announced verdicts. Pure.

What is found is kept and shown to the judge as it is, in its block; but a passage that says how to judge is
no evidence of what it says, and a verdict reached beside it needs better grounds (``judges.grounding.support``).
This recognises wordings, and somebody who knows them can avoid them: it is one defence of several, and
docs/decisions says what it does not prove.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from judges.grounding.confusables import plain_text
from judges.grounding.folding import FoldedText, fold
from judges.grounding.injection_multilingual import ABROAD, OPENER
from judges.grounding.injection_patterns import ENGLISH
from judges.grounding.injection_signals import ALONE, COMPANY, ONE_SENTENCE, Sign
from judges.grounding.phrase_search import WordingSearch

MAX_SCAN_CHARS: Final = 500_000
NEAR_CHARS: Final = 200
"""Signs at most this far apart belong to one passage."""
REACH_CHARS: Final = 500
"""How far a passage may reach beyond its first and last sign, and the longest sign."""
STRIDE_CHARS: Final = 20_000
TELLING: Final = ALONE | COMPANY.keys()
WORDINGS: Final = (*ENGLISH, *ABROAD)
_TELLING: Final = WordingSearch(wording for wording in WORDINGS if wording.sign in TELLING)
_OTHERS: Final = WordingSearch(wording for wording in WORDINGS if wording.sign not in TELLING)
FLOOD_TIMES: Final = 20
FLOOD_SHARE: Final = 0.3
"""A sentence that stands in a text so often, and makes up so much of it, is a flood and says nothing."""
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
_NOT_WORD = re.compile(r"\W*")
_BEFORE_START = re.compile(r"(?:^|[\n.!?:;>\])}\"'*#|-])\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A passage that speaks to the checker: ``text[start:end]`` of the text that was scanned.

    ``quoted``: it only stands in quotation marks, as in an article about such orders.
    """

    start: int
    end: int
    signs: frozenset[Sign]
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was found in one text. ``is_opener``: the whole text merely announces an answer, or is empty of words.
    ``is_flood``: one sentence makes up much of it.
    """

    orders: tuple[Order, ...] = ()
    is_opener: bool = False
    is_flood: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether anything gives reason to doubt what a judge made of the text."""
        return bool(self.orders) or self.is_opener or self.is_flood

    @property
    def gives_orders(self) -> bool:
        """Whether anything does so in the text's own voice."""
        return any(not order.quoted for order in self.orders)


@dataclass(frozen=True, slots=True)
class _Hit:
    sign: Sign
    start: int
    end: int


def scan(text: str, plain: FoldedText | None = None) -> Scan:
    """Look through a text of at most 500,000 characters; what is beyond is not looked at. ``plain`` is the same
    text folded and plain, where somebody has that already.

    Takes some hundred milliseconds for a long one: call it off the event loop.
    """
    if plain is None or len(text) > MAX_SCAN_CHARS:
        text = text[:MAX_SCAN_CHARS]
        plain = plain_text(fold(text))
    orders = [*_orders(plain, text), *_turned_around(text), *_decoded(text), *_rotated(plain, text)]
    opener = 0 < len(text) <= NEAR_CHARS and OPENER.fullmatch(plain.text.strip()) is not None
    in_order = sorted(set(orders), key=lambda order: (order.start, order.end))
    return Scan(orders=tuple(in_order), is_opener=opener, is_flood=_is_flood(plain.text))


def scan_url(url: str) -> Scan:
    """The same for the words of an address: what parts them there are other characters than spaces."""
    return scan(re.sub(r"%20|[+_/?&=#.-]+", " ", url.partition("://")[2]))


def _is_flood(plain: str) -> bool:
    sentences = Counter(re.split(r"(?<=[.!?])\s+", plain))
    return any(is_flood(times, len(sentence), len(plain)) for sentence, times in sentences.most_common(5))


def is_flood(times: int, chars: int, of_chars: int) -> bool:
    """Whether a passage of ``chars`` characters that stands ``times`` in a text of ``of_chars`` floods it."""
    return times >= FLOOD_TIMES and times * chars >= FLOOD_SHARE * of_chars


def _orders(plain: FoldedText, text: str) -> Iterator[Order]:
    """Passages whose signs together make an order, with the sentences around them."""
    spoken: list[tuple[int, int]] | None = None
    for group in _groups(_hits(plain, text)):
        signs = frozenset(hit.sign for hit in group)
        if not _is_order(signs):
            continue
        first, last = group[0].start, max(hit.end for hit in group)
        if spoken is None:  # most texts give no orders, and nobody needs to know what is quoted in them
            spoken = [found.span() for found in _QUOTED.finditer(plain.text)]
        place = bisect_right(spoken, (first, len(plain.text))) - 1
        if place >= 0 and spoken[place][1] >= last and _says_more(plain.text, *spoken[place]):
            start, end = plain.span(*spoken[place])
            yield Order(start=start, end=end, signs=signs, quoted=True)
        else:
            start, end = plain.span(first, last)
            before, after = (0, 0) if any(signs <= few for few in ONE_SENTENCE) else (1, 2)
            yield Order(start=_back(text, start, before), end=_ahead(text, end, after), signs=signs)


def _hits(plain: FoldedText, text: str) -> list[_Hit]:
    """Every sign that counts, in order: those that say something first, their company only near them."""
    hits = [hit for start in range(0, len(plain.text), STRIDE_CHARS) for hit in _found(_TELLING, plain, text, start)]
    needy = sorted(hit.start for hit in hits if hit.sign in COMPANY)
    for start, end in _windows(needy):
        hits += _found(_OTHERS, plain, text, start, end)
    return sorted(set(hits), key=lambda hit: (hit.start, hit.end, hit.sign))


def _found(search: WordingSearch, plain: FoldedText, text: str, start: int, end: int | None = None) -> Iterator[_Hit]:
    """Hits that start in one stretch. It is short, so that other threads get their turn in between."""
    end = start + STRIDE_CHARS if end is None else end
    for hit in search.found(plain.text, start, end, reach=REACH_CHARS):
        if not hit.wording.at_start or _starts_here(plain, text, hit.start):
            yield _Hit(hit.wording.sign, hit.start, hit.end)


def _windows(places: list[int]) -> Iterator[tuple[int, int]]:
    """Stretches around these places, in order, none twice."""
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
    """Hits that stand near each other, in order; never a whole page in one."""
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


def _is_order(signs: frozenset[Sign]) -> bool:
    return bool(signs & ALONE) or any(signs & COMPANY[sign] for sign in signs if sign in COMPANY)


def _says_more(plain: str, start: int, end: int) -> bool:
    """Whether there is a sentence around a quotation, as where somebody reports what was said."""
    before, after = plain[max(0, start - 120) : start], plain[end : end + 120]
    return len(re.findall(r"\w+", f"{re.split('[.!?]', before)[-1]} {re.split('[.!?]', after)[0]}")) >= 4


def _back(text: str, start: int, neighbours: int) -> int:
    """The start of the sentence at ``start``, or of one so many before it in its paragraph."""
    floor = max(0, start - REACH_CHARS)
    first_word = _NOT_WORD.match(text, start, start + NEAR_CHARS)
    place = start if first_word is None else first_word.end()
    paragraph = max((found.end() for found in _PARAGRAPH.finditer(text, floor, place)), default=floor)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, paragraph, place)]
    return min(start, ends[-1 - neighbours] if len(ends) > neighbours else paragraph)


def _ahead(text: str, end: int, neighbours: int) -> int:
    """The end of the sentence at ``end``, or of one so many after it in its paragraph."""
    ceiling = min(len(text), end + REACH_CHARS)
    paragraph = _PARAGRAPH.search(text, end, ceiling)
    limit = ceiling if paragraph is None else paragraph.start()
    ends = [found.end() for found in _SENTENCE_END.finditer(text, max(0, end - 1), limit)]
    return ends[neighbours] if len(ends) > neighbours else limit


def _turned_around(text: str) -> Iterator[Order]:
    """Orders written backwards behind a mark that shows them forwards."""
    for found in _REVERSED.finditer(text):
        yield from _as_one(found.start(), found.end(), found[1][::-1])


def _decoded(text: str) -> Iterator[Order]:
    """Orders in base64."""
    for count, found in enumerate(_ENCODED.finditer(text)):
        if count >= MAX_ENCODED:
            return
        written = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            hidden = base64.b64decode(written + "=" * (-len(written) % 4), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        yield from _as_one(found.start(), found.end(), hidden)


def _rotated(plain: FoldedText, text: str) -> Iterator[Order]:
    """Orders with each letter moved by thirteen places; only the plainest are looked for."""
    if not any(word in plain.text for word in _ROTATED_WORDS):
        return
    turned = FoldedText(plain.text.translate(_ROT13), plain.starts)
    for order in _orders(turned, text):
        if order.signs & {Sign.OVERRIDE, Sign.ORDER}:
            yield order


def _as_one(start: int, end: int, hidden: str) -> Iterator[Order]:
    """``text[start:end]`` as an order, if what it hides is one."""
    signs = frozenset(sign for order in _orders(plain_text(fold(hidden)), hidden) for sign in order.signs)
    if signs:
        yield Order(start=start, end=end, signs=signs)
