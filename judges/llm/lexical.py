"""Lexical judge: compares words, names, numbers and dates by code, and parses labels, lists, tables and links.

Deterministic, for English texts: a baseline, and for tests. It does not understand meaning: it refutes a paraphrase
without common words, and relates words only by distance. It reads the ``parts`` of a request, never the messages.
"""

from __future__ import annotations

import calendar
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count, islice, pairwise
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError

from answers.citations import unique_urls
from judges.cpu_bound import run_cpu_bound
from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm import json_schema
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.json_schema import JSONSchema, ReplyType, as_reply, fit, json_schema_of, resolve
from judges.llm.replies import empty_extraction
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage

MODEL = "lexical"
SPARE = 1 / 3  # share of a claim's common words that a passage may lack; it must contain all names and numbers
MAX_CHARS, MAX_LINE_CHARS, MAX_CLAIM_CHARS, MAX_QUOTE_CHARS, MAX_FACTS, MAX_DEPTH = 200_000, 5_000, 2_000, 500, 2_000, 4
"""Limits of the parsed text, so that a hostile text takes a second or two and not minutes."""
INLINE = 1_000_000
MONTHS = [name.casefold() for name in calendar.month_name[1:]]
CALENDAR = {*MONTHS, *map(str.casefold, calendar.day_name)}
_SAME = {"weight": "weigh", "depth": "deep", "height": "high", "length": "long", "width": "wide", "costs": "price"}
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d\d)\b")
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_ENDING = re.compile(r"(?<=...)(?:ations?|(?<=.....)ions?|ments?|ings?|ers?|ors?|ed|es|ly|s|e)$")
_SENTENCE_END = re.compile(r"(?<=[.!?;])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St)\.)(?<!\bMrs\.)\s+(?=[^\sa-z])")
_PAIR = re.compile(r"""^[^'"]*['"](.*?)['"] ((?:and|is|are|equal|match|refer)[^'"]*)['"](.*)['"]([^'"]*)$""")
_OPENING = re.compile(r"\W{0,9}([^\W\d_]+) ([^\W\d_]+)")
_HEADING = re.compile(r"(#{1,6})\s|\*\*[^*]+\*\*:?$")
_MARK = re.compile(r"\s*(?:[-+*•]\s+|#+\s+(?:\w+ \d+:\s+)?)?(?:\d{1,3}[.)]\s+)?")
_LABEL, _NEXT_LABEL = re.compile(r":\**\s+"), re.compile(r"(?:[,;.]\s+|\s\()(?=\**[A-Za-z][\w /-]{0,30}:\**\s)")
_NAME_END = re.compile(r"\s[\u2013\u2014-]\s|[(;]|[:,.]\s")
_BOLD = re.compile(r"\*\*([^*]+)(?<![:\s])\*\*")
_FRAMING = re.compile(
    r"\b(?:according to|as stated (?:in|on|by)|in|on) the (?:web ?page|page|source|article|answer)\b,?"
    r"|\bthe (?:web ?page|page|source|article|answer) (?:states?|says?|shows?|claims?|mentions?|confirms?)\b(?: that)?",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[([^\[\]]*)\]\([^)]*\)|<?https?://|\[\^?\w+\]")


def words(text: str) -> list[str]:
    """Return all words and numbers in order. ``1931-05-12`` is read as ``12 May 1931``."""
    return _WORD.findall(_ISO_DATE.sub(lambda at: f"{at[3]} {MONTHS[int(at[2]) - 1].title()} {at[1]}", text))


@lru_cache(maxsize=65_536)
def key(word: str) -> str:
    """Return the normal form of a word or number: ``advis`` for ``Advisers``, ``september`` for ``Sept``, ``1200``."""
    if word[0].isdigit():
        return re.sub(r",(?=\d{3}(?!\d))", "", word).lstrip("0") or "0"
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c)).casefold()
    plain = re.sub(r"'s?$", "", plain.replace("\u2019", "'"))
    month = next((each for each in MONTHS if len(plain) > 2 and each.startswith(plain)), None)
    stem = _ENDING.sub("", _SAME.get(plain, plain))
    return month or (plain if {plain, stem} & (CALENDAR | STOP) else stem) or word


def keys(text: str) -> frozenset[str]:
    return frozenset(map(key, words(text)))


def _without_framing(claim: str) -> str:
    """Return a claim without the part that says where it stands: "According to the page, ..."."""
    return _FRAMING.sub(" ", claim)


_NEGATIONS = "not no never neither nor none without cannot nobody nothing"
_COMMON = (
    "a about after all also am an and any are as at be became become been before being both but by can could did do "
    "does for from had has have he her his how i if in into is it its may more most of on only or other our she so "
    "still such than that the their them then there these they this to too under until was we were what when where "
    "which who while will with would you dr mr mrs ms prof according"
)
NEGATIONS = frozenset(_NEGATIONS.split())
STOP = NEGATIONS | frozenset(_COMMON.split())
"""Words, not their stems: ``station`` has the stem of ``stated``."""
_TITLES = keys("the dr mr mrs ms prof professor sir")
_LINKISH, _TITLISH = keys("url link source citation reference href website"), keys("name title")


class Passage(NamedTuple):
    """Sentence or table row. ``under``: its keys and those of its titles; ``near``: also of two earlier sentences."""

    start: int
    end: int
    words: list[str]
    under: frozenset[str]
    near: frozenset[str]


@lru_cache(maxsize=4)
def passages(text: str) -> list[Passage]:
    """Split a text into passages. Cached, because all claims and votes on a page use them."""
    split, since, titles, heads = list[Passage](), 0, frozenset[str](), dict[int, frozenset[str]]()
    for line in re.finditer(r"[^\n]+", text[:MAX_CHARS]):
        level, row = len(line[0]) - len(line[0].lstrip("#")), "|" in line[0]
        titles = (titles or keys(line[0])) if row else frozenset()
        if level:  # a passage is not related to the text before its heading
            heads, since = {n: head for n, head in heads.items() if n < level} | {level: keys(line[0])}, len(split)
        ends = [] if row else [end.end() for end in _SENTENCE_END.finditer(line[0])]
        for start, end in pairwise([0, *ends, len(line[0])]):
            said, opening = words(line[0][start:end]), None if row else _OPENING.match(line[0], start)
            # "Marie Duval painted it" is about her, regardless of the headings and the text before it.
            alone = opening and all(w[0].isupper() and key(w) not in STOP | CALENDAR for w in opening.groups())
            under = frozenset(map(key, said)).union(titles, *([] if alone else heads.values()))
            before = [] if alone or row else split[max(since, len(split) - 2) :]
            near = under.union(key(word) for each in before for word in each.words)
            split += [Passage(line.start() + start, line.start() + end, said, under, near)] if said else []
    return split


def denies(said: list[str], about: frozenset[str]) -> bool:
    """Return whether a negation occurs at most five words before one of the words ``about``."""
    places = [n for n, word in enumerate(said) if key(word) in NEGATIONS or key(word).endswith("n't")]
    return any(key(word) in about for n in places for word in said[n + 1 : n + 6])


def same(one: str, other: str) -> bool:
    """Return whether two texts name the same person, thing, date or value, ignoring titles, order and initials."""
    few, many = sorted(([key(w) for w in words(text) if key(w) not in _TITLES] for text in (one, other)), key=len)
    alike = all(any(a == b or (1 in (len(a), len(b)) and a[0] == b[0]) for b in many) for a in few)
    figures = [{part for part in parts if part[0].isdigit()} for parts in (few, many)]
    return alike and figures[0] == figures[1] and (len(few) > 1 or few == many[-1:] != [])


def closest(claim: str, text: str) -> tuple[Passage, frozenset[str], frozenset[str], frozenset[str], bool] | None:
    """Return the passage closest to a claim; None if there is none, or nothing to compare.

    After it come the keys of the claim, the required ones that it lacks, all that it lacks, and whether both or neither
    have a negation.
    """
    said = words(_without_framing(claim[:MAX_CLAIM_CHARS]))
    # The first word is always capitalised. It is a name only if the second word is capitalised, too.
    capital = {key(word) for word in said[not (said[1:] and said[1][0].isupper()) :] if word[0].isupper()}
    figures = frozenset(key(word) for word in said if word[0].isdigit()) | (capital & CALENDAR)
    names = frozenset(capital) - figures - STOP
    plain = frozenset(map(key, said)) - figures - names - STOP
    about = figures | names | plain

    def missing(passage: Passage) -> frozenset[str]:
        """Return the required keys that the passage lacks; common words only if more than ``SPARE`` are missing."""
        must, absent = (figures - passage.under) | (names - passage.near), plain - passage.near
        return must | absent if len(absent) > SPARE * len(plain) else must

    ranked = ((-len(missing(each)), len(about.intersection(map(key, each.words))), each) for each in passages(text))
    best = max(ranked, key=lambda each: each[:2], default=(0, 0, None))[2]
    if best is None or not about:
        return None
    absent = (figures - best.under) | ((names | plain) - best.near)
    return best, about, missing(best), absent, denies(best.words, about) == denies(said, about)


def decide(claim: str, parts: Mapping[str, str]) -> BinaryEvalResult:
    """Judge one claim by the page, or by the answer if there is no page."""
    text = parts.get("page", parts.get("answer", ""))
    pair = None if "page" in parts else _PAIR.search(claim[:MAX_CLAIM_CHARS])
    if pair and re.search("same|equal|match|identical|equivalent|refer", pair[2] + pair[4]):
        result = same(pair[1], pair[3]) != bool(re.search(r"\b(?:not|different)\b", pair[2] + pair[4]))
        return BinaryEvalResult(result=result, reasoning=f"Compared the spellings {pair[1]!r} and {pair[3]!r}.")
    found = closest(claim, text)
    if found is None or found[2]:
        lacking = () if found is None else (word for word in words(claim[:MAX_CLAIM_CHARS]) if key(word) in found[2])
        missing = ", ".join(dict.fromkeys(lacking)) or "anything to compare"
        return BinaryEvalResult(result=False, reasoning=f"The closest passage lacks {missing}.")
    best, *_, agrees = found
    # A passage of one or two words is quoted with the line before it.
    start = text.rfind("\n", 0, max(best.start - 1, 0)) + 1 if len(best.words) < 3 else best.start
    quote = text[start : best.end].strip()
    quote = quote if len(quote) <= MAX_QUOTE_CHARS else quote[:MAX_QUOTE_CHARS].rpartition(" ")[0]
    reasoning = "A passage says so." if agrees else "The closest passage differs by a negation."
    return BinaryEvalResult(result=agrees, reasoning=reasoning, quotes=[quote])


class Label(NamedTuple):
    """Heading, item, row, or at level ``INLINE`` a column title or ``label:``. ``serial`` distinguishes equal ones."""

    level: int
    serial: int
    words: str


Fact: TypeAlias = tuple[tuple[Label, ...], str]
"""The labels of a value, outermost first, and the value."""


def clean(raw: str) -> str:
    """Return a value without list marker, emphasis and links. If nothing precedes a link, return its text."""
    raw = _MARK.sub("", raw, count=1)
    if link := _LINK.search(raw):
        before = re.sub(r"[,;(\u2013\u2014][a-z\s:]*$", "", raw[: link.start()])  # removes ", see the", too
        raw = before if re.search(r"\w", before) else link[1] or ""
    return re.sub(r"[*`]", "", raw).strip(" \t\r_:;,.(\u2013\u2014-|[]\"'")


def facts(text: str) -> Iterator[Fact]:
    """Yield the values of a text with their labels. The first line of a paragraph is a label of its other lines."""
    serial, fresh, path, titles = count(), True, tuple[Label, ...](), list[str]()
    for raw in text.split("\n"):
        stripped = raw.strip()[:MAX_LINE_CHARS]
        if set(stripped) <= set("|-: "):  # an empty line, or the delimiter row of a table
            fresh, titles = True, titles if stripped else []
            continue
        cells = [cell.strip() for cell in stripped.strip("|").split("|")] if "|" in stripped else []
        titles = (titles or cells) if cells else []
        opening, heading = _MARK.sub("", stripped, count=1), None if cells else _HEADING.match(stripped)
        marked, bold = opening != stripped, stripped[:2] == "**"
        goes_on = marked or not (fresh or cells or bold)
        level = len(heading[1] or "7777777") if heading else 8 + len(raw) - len(raw.lstrip()) + goes_on
        parts = [_LABEL.split(part) for part in ([] if cells else _NEXT_LABEL.split(opening))]
        single = not cells and len(parts[0]) == 2 and not _NAME_END.search(parts[0][0])  # one label with its value
        leads = not single and (cells or heading or marked or bold or stripped[-1] == ":")
        name = next((cell for cell in cells if not cell.isdigit()), opening) if leads else ""
        name = _NAME_END.split(bold_name[1] if (bold_name := _BOLD.match(name)) else name)[0]
        over, fresh = [up for up in path if up.level < level], bool(heading)
        path = (*over[:MAX_DEPTH], Label(level, next(serial), clean(name)))
        for *labels, value in zip(titles, cells, strict=False) if cells != titles else parts:
            yield (*path, *(Label(INLINE, next(serial), label) for label in labels[-1:])), value


@lru_cache(maxsize=4096)
def affinity(field: str, description: str, label: str) -> int:
    """Rate how well a label matches a field: 3 same words, 2 some of them, 1 words of its description, 0 no match."""
    said, named = keys(label) - STOP, keys(field) - STOP
    if not said or said == named:
        return 3 * bool(said)
    return 2 if said < named or named < said else int(said <= keys(description))


def value_of(field: str, schema: JSONSchema, said: list[Fact], root: JSONSchema) -> Any:
    """Return the value of a field under its best matching label, or None. Links need no label."""
    linkish = bool(keys(field) & _LINKISH) or '"uri"' in json.dumps(schema)
    description = str(schema.get("description") or "")
    labels = {label: affinity(field, description, label.words) for path, _ in said for label in path}
    best = max(labels, key=lambda label: labels[label], default=Label(0, 0, ""))
    under = [(path[path.index(best) + 1 :], value) for path, value in said if best in path] if labels.get(best) else []
    inner, many = json_schema.object_in(schema, root)
    if inner and many:
        return records(inner, under if labels.get(best) == 3 and len(under) > 1 else said, root)
    if inner or not (under or linkish):
        return build(inner, under, root)[0] if inner and under else None
    links = [unique_urls("\n".join(value for _, value in facts)) for facts in (under, said if linkish else [])]
    candidates: list[Any] = [each for urls in links if urls for each in (urls[0], urls)]
    texts = [text for _, value in under if (text := clean(value)) and text != best.words]
    if texts and not linkish:
        number = re.search(r"-?\d+(?:[.,]\d+)*", texts[0])
        several = texts if texts[1:] else [clean(each) for each in re.split(r"[,;]\s(?:and\s)?|\sand\s", texts[0])]
        candidates = [texts[0], number and number[0].replace(",", ""), several, *candidates]
    for candidate in filter(None, candidates):
        with suppress(json_schema.Misfit):
            return fit(candidate, schema, root)
    return None


def build(schema: JSONSchema, said: list[Fact], root: JSONSchema, name: str = "") -> tuple[dict[str, Any] | None, int]:
    """Fill ``schema`` from facts. Return the values (None if a required one is missing) and their number."""
    values = {field: value_of(field, each, said, root) for field, each in json_schema.properties(schema).items()}
    values |= {field: name for field, value in values.items() if value is None and keys(field) & _TITLISH}
    values = {field: value for field, value in values.items() if value not in (None, "", [])}
    with suppress(json_schema.Misfit):
        return fit(values, schema, root), len(values)
    return None, 0


def records(schema: JSONSchema, said: list[Fact], root: JSONSchema) -> list[dict[str, Any]]:
    """Return the sibling headings, items or rows that fill the most fields of ``schema``."""
    runs: dict[tuple[Label, ...], dict[Label, list[Fact]]] = {}
    for path, value in said:
        for depth, label in enumerate(up for up in path if up.level < INLINE):
            runs.setdefault(path[:depth], {}).setdefault(label, []).append((path[depth + 1 :], value))
    best: tuple[float, list[dict[str, Any]]] = (0.0, [])
    for run in runs.values():
        built = [build(schema, under, root, label.words) for label, under in run.items()]
        enough = max(score for _, score in built) / 2
        selected = [(one, score) for one, score in built if one and score > enough]
        worth = sum(score for _, score in selected) * min(len(selected), 2) / max(len(selected), 1)
        best = max(best, (worth, [one for one, _ in selected]), key=lambda each: each[0])
    return best[1]


def fill(schema: ReplyType, text: str, page_links: str = "") -> tuple[str, BaseModel | None]:
    """Extract ``schema`` (see ``as_reply``). ``page_links`` has lines ``text<TAB>target``.

    If the text lacks all values, or one that the schema requires, return ``{}``: an empty extraction.
    """
    targets = {line.partition("\t")[0]: line.rpartition("\t")[2] for line in page_links.splitlines()} | {"": ""}
    lines = (f"{line} {targets.get(clean(line[:200]), '')}" for line in text[:MAX_CHARS].split("\n"))
    root = json_schema_of(schema)
    values, _ = build(resolve(root, root), list(islice(facts("\n".join(lines)), MAX_FACTS)), root)
    with suppress(ValidationError):
        if values:
            return as_reply(values, schema)
    return "{}", None if isinstance(schema, json_schema.ReplySchema) else empty_extraction(schema)


def reply(request: LLMRequest) -> tuple[str, BaseModel | None]:
    """Fill the request's schema (see ``as_reply``) or raise LLMOutputUnusable, as for free text."""
    schema, parts = request.schema, request.parts
    if schema is None or request.purpose == "free":
        raise LLMOutputUnusable(UnusableKind.REFUSED, "the lexical judge only verifies and extracts")
    if request.purpose == "extract":
        return fill(schema, parts.get("page", parts.get("answer", "")), parts.get("page_links", ""))
    return as_reply(decide(parts.get("claim", ""), parts).model_dump(), schema)


class LexicalClient:
    """``LLMClient`` for the lexical judge. Long texts are read in a thread, because they would block the event loop."""

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Return the result of ``reply``, with its errors."""
        text, parsed = await run_cpu_bound(lambda: reply(request), *request.parts.values(), limit_chars=MAX_LINE_CHARS)
        return LLMReply(text=text, parsed=parsed, model=MODEL, usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Do nothing."""
