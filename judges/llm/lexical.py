"""The judge without a model: it compares words, names, numbers and dates, and quotes the passage it found them in.

A baseline and a test tool, deterministic and in English. It knows no meaning: a paraphrase without common words is
refuted, and who did what to whom is told only by which names and numbers stand together. Every reply names its model
``lexical``, so no result can pass for a model's. It reads the request's ``parts``, never the messages.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import BaseModel

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.lexical_fields import core, fill
from judges.llm.lexical_passages import Passage, Reading, read
from judges.llm.lexical_words import CALENDAR, MONTHS, NEGATIONS, PRONOUNS, STOP, Token, keys, tokens
from rubrics.verdict import Usage

MODEL = "lexical"
ANCHORED, UNANCHORED = 0.66, 0.75
"""Share of a claim's plain words that one passage must hold if the claim has a name or number, and if it has none."""
MAX_CLAIM_CHARS, MAX_QUOTE_CHARS = 2_000, 500
_SOURCE = r"(?:the|this) (?:[\w-]+ )?(?:web ?page|web ?site|page|source|article|document|text|url|answer)"
_FRAME = re.compile(
    rf"^\W*{_SOURCE} (?:\w+ly )?(?:states?|says?|shows?|mentions?|confirms?|supports?|indicates?|reports?|lists?)"
    rf"(?: the claim)?(?: that)?:?\s|^\W*according to {_SOURCE},?"
    rf"|,? (?:according to|(?:as )?\w+ (?:on|in|by)) {_SOURCE}\W*$",
    re.IGNORECASE,
)
"""What a claim says about where it stands, not about the world."""
_PAIR = re.compile(
    r"(?:^|[\s(])['\"\u2018\u201c`](?P<a>.*?)['\"\u2019\u201d`] (?P<link>(?:and|is|are|equals?|match(?:es)?|refers?)\b"
    r".{0,60}?)['\"\u2018\u201c`](?P<b>.*?)['\"\u2019\u201d`](?P<rest>[^'\"\u2018\u201c`]*)$"
)


class Claim(NamedTuple):
    """What is looked for: every name and number, most of the plain words, and a yes or a no."""

    names: tuple[str, ...]
    numbers: frozenset[str]
    words: frozenset[str]
    units: tuple[tuple[str, str], ...]
    """Numbers with what they count, ``75 hours``, and days with their month."""
    negated: bool
    written: Mapping[str, str]
    """Names and numbers as the claim spells them."""

    @property
    def known(self) -> frozenset[str]:
        return self.words | self.numbers | frozenset(" ".join(self.names).split())


class Finding(NamedTuple):
    """What a window of passages lacks of a claim, and the share of the claim's plain words that it has."""

    missing: tuple[str, ...]
    overlap: float
    window: tuple[Passage, ...]

    @property
    def rank(self) -> tuple[int, float, int]:
        return -len(self.missing), self.overlap, -len(self.window)


class Opinion(NamedTuple):
    supported: bool
    reasoning: str
    quotes: tuple[str, ...] = ()


def names(text: str, words: list[Token], proper: frozenset[str]) -> list[list[Token]]:
    """Runs of capitalised words with the small numbers that belong to them: ``Ida Norrstad``, ``Kestrel 4``."""
    runs: list[list[Token]] = []
    for n, token in enumerate(words):
        last = runs[-1][-1] if runs and n and runs[-1][-1] is words[n - 1] else None
        glued = last and last.key not in CALENDAR and re.fullmatch(r"[ .-]{1,2}", text[last.end : token.start])
        named = token.capital and not token.digits and (token.key not in STOP | NEGATIONS or token.key in CALENDAR)
        if glued and ((named and token.key not in CALENDAR) or (token.key.isdigit() and len(token.key) < 4)):
            runs[-1].append(token)
        elif named:
            runs.append([token])
    # The first word of a sentence is capitalised anyway.
    return runs[1:] if runs and runs[0] == words[:1] and words[0].key not in proper | CALENDAR else runs


def parse(text: str, proper: frozenset[str]) -> Claim:
    words = tokens(text)
    runs = names(text, words, proper)
    named = {token.start for run in runs for token in run}
    numbers = [t for t in words if t.digits and t.start not in named]
    plain = [t for t in words if t.start not in named and not t.digits and t.key not in STOP | NEGATIONS]
    units = [(n.key, unit.key) for n, unit in pairwise(words) if n in numbers and (unit in plain or unit.key in MONTHS)]
    units += [(day.key, month.key) for month, day in pairwise(words) if day in numbers and month.key in MONTHS]
    return Claim(
        tuple(" ".join(token.key for token in run) for run in runs),
        frozenset(token.key for token in numbers),
        frozenset(token.key for token in plain),
        tuple(unit for unit in units if unit[1] not in MONTHS or len(unit[0]) < 3),
        any(negates(token) for token in words),
        {" ".join(t.key for t in run): text[run[0].start : run[-1].end] for run in [*runs, *([n] for n in numbers)]},
    )


def negates(token: Token) -> bool:
    return token.key in NEGATIONS or token.key.endswith("n't")


def find(claim: Claim, reading: Reading) -> Finding | None:
    """The passage that holds most of the claim, with up to two before it that it leans on; None in an empty text."""
    best: Finding | None = None
    for index in range(len(reading.passages)):
        window: tuple[Passage, ...] = ()
        for earlier in reversed(reading.passages[max(0, index - 2) : index + 1]):
            if window and (earlier.cells or not leans(window[0], claim)):
                break
            window = (earlier, *window)
            finding = weigh(claim, window, reading)
            best = finding if best is None or finding.rank > best.rank else best
    return best


def leans(passage: Passage, claim: Claim) -> bool:
    """Whether a sentence goes on about what came before: a pronoun, no name of its own, or a name of the claim."""
    own = {t.key for t in passage.tokens[1:] if t.capital and t.key not in STOP}
    pronoun = any(t.key in PRONOUNS for t in passage.tokens[:3])
    return not passage.cells and (not own or pronoun or bool(own & claim.known))


def weigh(claim: Claim, window: tuple[Passage, ...], reading: Reading) -> Finding:
    context = window[-1].context
    # A sentence takes names from what it leans on, but says a lone number and what it counts itself.
    days = {number for number, unit in claim.units if unit in MONTHS}
    saying = window[-1:] if claim.numbers and len(claim.numbers - days) < 2 else window
    said = {t.key for p in saying for t in p.tokens}
    # What opens with another name is about that one: its headings lend no name and no number.
    foreign = any(t.capital and t.key in reading.proper - claim.known for t in window[0].tokens[:3])
    flat = " | ".join([*(p.flat for p in window), *([] if foreign else [" ".join(context)])])
    missing = [name for name in claim.names if not held(name, f" {flat} ", reading.flat)]
    missing += sorted(claim.numbers - said - (frozenset() if foreign else frozenset(context)))
    missing += [f"{n} {unit}" for n, unit in claim.units if n in said and not any(counts(p, n, unit) for p in saying)]
    missing += [n for n in sorted(claim.numbers & said) if any(strays(p, n, claim.words) for p in saying)]
    overlap = len(claim.words & said.union(context)) / len(claim.words) if claim.words else 1.0
    return Finding(tuple(missing), overlap, window)


def held(name: str, flat: str, everywhere: str) -> bool:
    """Whether a passage names it: as written, all its words, or the last where the text has it in full elsewhere."""
    parts = [part for part in name.split() if len(part) > 1]
    if f" {name} " in flat or not parts or re.search(r"\d", name):
        return f" {name} " in flat
    return all(f" {part} " in flat for part in parts) or (f" {parts[-1]} " in flat and f" {name} " in everywhere)


def counts(passage: Passage, number: str, unit: str) -> bool:
    """Whether a passage can mean that many of the unit: it names the unit near the number, or nothing else there."""
    for n, token in enumerate(passage.tokens):
        before, after = passage.tokens[max(0, n - 1) : n], passage.tokens[n + 1 : n + 4]
        silent = not after or after[0].capital or after[0].digits or after[0].key in STOP
        if token.key == number and (unit in {t.key for t in (*before, *after)} or (silent and unit not in MONTHS)):
            return True
    return False


def strays(row: Passage, number: str, words: frozenset[str]) -> bool:
    """Whether a table row has the number in a cell about something else, while another cell fits the claim."""
    cells = [keys(cell) for cell in row.cells[1:]]
    holds = [cell for cell in cells if number in cell]
    return bool(holds) and not any(words & cell for cell in holds) and any(words & cell for cell in cells)


def spelling(text: str) -> list[str]:
    return [t.key for t in tokens(text) if t.key not in STOP or (t.capital and t.end - t.start == 1)]


def same(one: str, other: str) -> bool:
    """Whether two spellings name one person, thing, date or value: initials, order and titles aside."""
    a, rest = sorted((spelling(one), spelling(other)), key=len)
    whole = list(rest)
    if not a or {k for k in a if k[0].isdigit()} != {k for k in rest if k[0].isdigit()}:
        return False
    for part in a:
        match = next((k for k in rest if k == part or (1 in (len(k), len(part)) and k[0] == part[0])), None)
        if match is None:
            return False
        rest.remove(match)
    heads = {text.split(",")[0].strip().casefold() for text in (one, other)}
    return len(a) > 1 or not rest or a == whole[-1:] or len(heads) == 1


def decide(text: str, parts: Mapping[str, str]) -> Opinion:
    """Judge one claim by the page, or by the answer where there is no page."""
    if len(text) > MAX_CLAIM_CHARS:
        return Opinion(
            False, f"The claim has more than {MAX_CLAIM_CHARS} characters; no single passage can hold it all."
        )
    page, where = (parts["page"], "the page") if "page" in parts else (parts.get("answer", ""), "the answer")
    pair = _PAIR.search(text)
    linked = pair["link"] + pair["rest"] if pair else ""
    if pair and re.search(r"same|equal|match|identical|equivalent|refer", linked):
        alike = same(pair["a"], pair["b"])
        if alike or "page" not in parts:
            spelt = f"{pair['a']!r} and {pair['b']!r} are {'' if alike else 'not '}spellings of one name or value."
            return Opinion(alike != bool(re.search(r"\b(?:not|different)\b|n't", linked)), spelt)
    reading = read(page)
    claim = parse(
        _FRAME.sub("", text), reading.proper.union(*(read(parts.get(k, "")).proper for k in ("answer", "task")))
    )
    if not claim.known:
        return Opinion(False, "The claim holds no word, name or number that could be looked up.")
    best = find(claim, reading)
    if best is None:
        return Opinion(False, f"There is no text in {where}.")
    if best.missing:
        lacking = ", ".join(claim.written.get(each, each) for each in best.missing)
        return Opinion(False, f"No passage of {where} has it all: the closest lacks {lacking}.")
    if best.overlap < (ANCHORED if claim.names or claim.numbers else UNANCHORED):
        return Opinion(False, f"The closest passage of {where} has only {best.overlap:.0%} of the claim's words.")
    said = max(best.window, key=lambda p: len(claim.words & {t.key for t in p.tokens}))
    passage = quote(said, page, reading)
    near = [said.tokens[n + 1 : n + 6] for n, token in enumerate(said.tokens) if negates(token)]
    if any(token.key in claim.known for after in near for token in after) != claim.negated:
        return Opinion(False, f"A passage of {where} differs from the claim by a negation.", (passage,))
    praise = f"A passage of {where} has every name and number and {best.overlap:.0%} of the words of the claim."
    return Opinion(True, praise, (passage,))


def quote(said: Passage, text: str, reading: Reading) -> str:
    """The passage verbatim; one too short to be recognised takes what stands before it along."""
    short = len(said.tokens) < 3 or said.end - said.start < 12
    start = reading.passages[max(0, reading.passages.index(said) - 1)].start if short else said.start
    words = text[start : said.end].strip()
    return words if len(words) <= MAX_QUOTE_CHARS else words[:MAX_QUOTE_CHARS].rpartition(" ")[0]


def reply(request: LLMRequest) -> BaseModel:
    """The request's schema, filled. Raises LLMOutputUnusable for what words alone cannot do."""
    schema, parts = request.schema, request.parts
    if schema is None or request.purpose == "free":
        raise LLMOutputUnusable(UnusableKind.REFUSED, "the lexical judge verifies and extracts; it does not write")
    if request.purpose == "extract":
        return fill(schema, parts.get("page", parts.get("answer", "")), parts.get("page_links", ""))
    opinion = decide(parts.get("claim", ""), parts)
    values: dict[str, Any] = {}
    for name, info in schema.model_fields.items():
        kind, inner = core(info.annotation)
        if inner is None:
            values[name] = opinion.supported if kind is bool else opinion.reasoning
        else:
            listed = isinstance(inner, type) and issubclass(inner, BaseModel)
            values[name] = [dict.fromkeys(inner.model_fields, q) if listed else q for q in opinion.quotes]
    return schema.model_validate(values)


class LexicalClient:
    """The lexical judge as an LLMClient. It works in a thread: a long page takes longer than the loop may wait."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Answer by the words alone. Raises LLMOutputUnusable where words alone cannot."""
        parsed = await asyncio.to_thread(reply, request)
        return LLMReply(text=parsed.model_dump_json(), parsed=parsed, model=MODEL, usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing to close."""
