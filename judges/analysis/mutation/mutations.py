"""Mutations of an answer's text. The same answer and seed give the same mutations. Pure.

Values to change come from the claims of passing leaves if the answer contains them, the task does not, and the judge
extracted them. New values are invented: they occur in no page and not in the answer, so nothing can support them.

Mutations change sections, citations, and values (numbers, names) outside of URLs.
"""

from __future__ import annotations

import calendar
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from answers.citations import Citation, CitationKind, citations
from cache.urls import canonical_key
from judges.analysis.mutation.leaves import ObservedRun

_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>[^\n]*)$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_NUMBER = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?![\w]|[.,:]\d)")
_NAME = re.compile(r"\b[^\W\d_a-z][^\W\d_]+(?:[ \u00a0][^\W\d_a-z][^\W\d_]+)*")
_CALENDAR = frozenset(each.casefold() for each in (*calendar.month_name[1:], *calendar.day_name))
_LEADING = re.compile(r"^(?:(?:The|An?|On|In|At|Of|For|By|From|To|Its?|This|That|And|But)(?:\s|$))+")
"""Capitalized words that may precede a name at the start of a sentence."""
_MIN_NAME_CHARS = 4
_TITLE_CHARS = 60
_CACHED_TEXTS = 64
"""Cache size: all leaves use the same few texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Text between a heading and the next heading of any level: ``text[start:end]``, without the heading.

    In an answer without headings, a section is a paragraph.
    """

    title: str
    start: int
    end: int


def sections(text: str) -> tuple[Section, ...]:
    """Return the nonempty sections of an answer, in order."""
    headings = list(_HEADING.finditer(text))
    if headings:
        ends = [*(heading.start() for heading in headings[1:]), len(text)]
        parts = [
            Section(title=each["title"].strip(), start=each.end(), end=end)
            for each, end in zip(headings, ends, strict=True)
        ]
    else:
        parts = list(_paragraphs(text))
    return tuple(each for each in parts if text[each.start : each.end].strip())


def numbers(text: str) -> tuple[str, ...]:
    """Return the distinct numbers of a text as written (``480``, ``1,350``, ``8:40``), in order."""
    return tuple(dict.fromkeys(_NUMBER.findall(text)))


def names(text: str) -> tuple[str, ...]:
    """Return the distinct sequences of capitalized words that may be names, in order, without months and days."""
    candidates = (_LEADING.sub("", each[0]) for each in _NAME.finditer(text))
    return tuple(
        dict.fromkeys(
            each for each in candidates if len(each) >= _MIN_NAME_CHARS and not _CALENDAR & set(each.casefold().split())
        )
    )


def count_value(value: str, text: str) -> int:
    """Return how often a value occurs in a text as a whole word or number."""
    return len(_whole(value).findall(text))


def replace_value(text: str, value: str, by: str) -> str:
    """Return the text with every occurrence of a value replaced, except in URLs."""
    spans = [(each.start, each.end) for each in citations(text) if each.kind is not CitationKind.REFERENCE]
    whole, out, at = _whole(value), [], 0
    for start, end in sorted(spans):
        out += [whole.sub(lambda _: by, text[at:start]), text[start:end]]
        at = end
    return "".join([*out, whole.sub(lambda _: by, text[at:])])


@lru_cache(maxsize=_CACHED_TEXTS)
def without_urls(text: str) -> str:
    """Return the text with every URL replaced by a space."""
    spans = sorted((each.start, each.end) for each in citations(text) if each.kind is not CitationKind.REFERENCE)
    out, at = [], 0
    for start, end in spans:
        out.append(text[at:start])
        at = end
    return " ".join([*out, text[at:]])


def without_citation(text: str, url: str) -> str | None:
    """Return the text without citations of a page, but with the link texts; None if a citation remains."""
    key = canonical_key(url)
    matching = [each for each in citations(text) if canonical_key(each.url) == key]
    after: list[str] = []  # from the end; joined at the end, because copying the text each time takes quadratic time
    last = len(text)
    for each in sorted(matching, key=lambda each: -each.start):
        start, end, words = _markup(text, each)
        if end > last:  # the markup of the previous one encloses it
            text, after = text[:last] + "".join(reversed(after)), []
            last = len(text)
            start, end, words = _markup(text, each)
        after += [text[end:last], words]
        last = start
    text = text[:last] + "".join(reversed(after))
    return text if key not in cited_keys(text) else None


def with_citation_of(text: str, url: str, other: str) -> str | None:
    """Return the text with every citation of a page replaced by ``other``; None if that fails."""
    key = canonical_key(url)
    matching = [
        each for each in citations(text) if canonical_key(each.url) == key and each.kind is not CitationKind.REFERENCE
    ]
    pieces, at = [], 0
    for each in sorted(matching, key=lambda each: each.start):
        pieces += [text[at : each.start], other]
        at = each.end
    text = "".join([*pieces, text[at:]])
    keys = cited_keys(text)
    return text if key not in keys and canonical_key(other) in keys else None


@lru_cache(maxsize=_CACHED_TEXTS)
def cited_keys(text: str) -> frozenset[str]:
    """Return the keys of the pages that a text cites."""
    return frozenset(canonical_key(each.url) for each in citations(text))


def _markup(text: str, cited: Citation) -> tuple[int, int, str]:
    """Return start and end of a citation with its markup, and the text that replaces it."""
    start, end = cited.start, cited.end
    if cited.kind is CitationKind.REFERENCE:
        return start, end, cited.label
    if cited.kind in (CitationKind.LINK, CitationKind.IMAGE):
        close, opening = text.find(")", end), text.rfind("](", 0, start)
        opened = opening - len(cited.label) - 1
        if close >= 0 and opening >= 0 and text[opened : opened + 1] == "[":
            image = cited.kind is CitationKind.IMAGE
            return opened - image, close + 1, "" if image else cited.label
    if cited.kind is CitationKind.DEFINITION:
        line = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        return line, len(text) if after < 0 else after + 1, ""
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return start - 1, end + 1, ""
    return start, end, ""


def _whole(value: str) -> re.Pattern[str]:
    edge = r"(?<![\w.,:]){}(?![\w]|[.,:]\d)" if value[:1].isdigit() else r"(?<!\w){}(?!\w)"
    return re.compile(edge.format(re.escape(value)))


def _paragraphs(text: str) -> Iterator[Section]:
    at = 0
    for blank in [*_BLANK_LINES.finditer(text), None]:
        end = len(text) if blank is None else blank.start()
        title = " ".join(text[at:end].split())
        yield Section(title=title[:_TITLE_CHARS], start=at, end=end)
        at = end if blank is None else blank.end()


_INVENTED = (
    "Orsolya Bexmoor", "Thaddeus Wrenfeld", "Quillon Abersoe", "Ysolde Marchbank", "Percival Duxbury",
    "Zephyrine Tolland", "Ignatius Farrowe", "Wilhelmina Vosk", "Barnaby Quorndon", "Eudora Hesketh",
)  # fmt: skip
_MAX_TRIES = 200
_LAST_DAY = 28


class MutationKind(StrEnum):
    """Kind of a mutation."""

    UNTOUCHED = "untouched"
    """Control: adds only a blank line at the end. A leaf that changes anyway is unstable."""
    DROP_CITATION = "drop_citation"
    SWAP_NUMBER = "swap_number"
    SWAP_NAME = "swap_name"
    OTHER_PAGE = "other_page"
    """Replaces a citation with another page."""
    EMPTY_SECTION = "empty_section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One mutation. ``piece`` is the original part, ``by`` its replacement, ``text`` the complete changed answer."""

    kind: MutationKind
    piece: str
    text: str
    by: str = ""

    @property
    def title(self) -> str:
        match self.kind:
            case MutationKind.UNTOUCHED:
                return "only a blank line added"
            case MutationKind.DROP_CITATION:
                return f"citation dropped: {self.piece}"
            case MutationKind.SWAP_NUMBER | MutationKind.SWAP_NAME:
                return f"{self.piece!r} replaced by {self.by!r}"
            case MutationKind.OTHER_PAGE:
                return f"{self.by} cited instead of {self.piece}"
            case MutationKind.EMPTY_SECTION:
                return f"section emptied: {self.piece}"


def mutations_of(
    answer: str,
    base: ObservedRun,
    pages: Mapping[str, str],
    *,
    seed: int,
    per_kind: int | None,
    is_detectable: Callable[[Mutation], bool],
) -> tuple[Mutation, ...]:
    """Return mutations of ``answer``, at most ``per_kind`` of each kind (None: all), the untouched one first.

    ``base`` is the run on the original answer, ``pages`` are the texts of the cited pages by URL. ``is_detectable``
    returns whether a mutation must change a leaf. It selects the page that replaces a citation.
    """
    rng = random.Random(seed)  # noqa: S311 - not used for security
    known_text = "\n".join([answer, *pages.values()])
    makers: tuple[Callable[[], Iterator[Mutation]], ...] = (
        lambda: _dropped(answer, base, pages),
        lambda: _swapped(
            MutationKind.SWAP_NUMBER, answer, base, numbers, lambda value: _other_number(value, known_text, rng)
        ),
        lambda: _swapped(
            MutationKind.SWAP_NAME, answer, base, names, lambda value: _other_name(value, known_text, rng)
        ),
        lambda: _moved(answer, base, pages, is_detectable, rng),
        lambda: _emptied(answer),
    )
    mutations = [Mutation(kind=MutationKind.UNTOUCHED, piece="", text=answer + "\n\n")]
    for make in makers:
        every = list(make())
        if per_kind is not None and len(every) > per_kind:
            chosen = sorted(rng.sample(range(len(every)), per_kind))
            every = [every[place] for place in chosen]
        mutations += every
    return tuple(mutations)


def values_of(claim: str, base: ObservedRun, answer: str) -> tuple[str, ...]:
    """Return the numbers and names of a claim that the answer contains, the judge extracted and the task lacks."""
    without_links = without_urls(answer)
    return tuple(
        value
        for value in (*numbers(claim), *names(claim))
        if not count_value(value, base.task) and count_value(value, without_links) and read_count(value, base)
    )


def read_count(value: str, run: ObservedRun) -> int:
    """Return how often a value occurs in the extracted values."""
    return sum(count_value(value, text) for text in run.values)


def _testable_pages(base: ObservedRun, pages: Mapping[str, str]) -> Sequence[str]:
    """Return the URLs of the sources of passing leaves."""
    keys = {key for leaf in base.passed for key in leaf.sources or ()}
    return [url for url in pages if canonical_key(url) in keys]


def _dropped(answer: str, base: ObservedRun, pages: Mapping[str, str]) -> Iterator[Mutation]:
    for url in _testable_pages(base, pages):
        text = without_citation(answer, url)
        if text is not None:
            yield Mutation(kind=MutationKind.DROP_CITATION, piece=url, text=text)


def _moved(
    answer: str,
    base: ObservedRun,
    pages: Mapping[str, str],
    is_detectable: Callable[[Mutation], bool],
    rng: random.Random,
) -> Iterator[Mutation]:
    cited = cited_keys(answer)
    others = [url for url in pages if canonical_key(url) in cited]
    for url in _testable_pages(base, pages):
        mutations: list[Mutation] = []
        for other in rng.sample(others, len(others)):
            text = None if canonical_key(other) == canonical_key(url) else with_citation_of(answer, url, other)
            if text is not None:
                mutations.append(Mutation(kind=MutationKind.OTHER_PAGE, piece=url, text=text, by=other))
        if mutations:
            yield next(filter(is_detectable, mutations), mutations[0])


def _swapped(
    kind: MutationKind,
    answer: str,
    base: ObservedRun,
    kinds: Callable[[str], Iterable[str]],
    other: Callable[[str], str | None],
) -> Iterator[Mutation]:
    claimed = dict.fromkeys(
        value for leaf in base.passed for value in values_of(leaf.claim or "", base, answer) if value in kinds(value)
    )
    for value in claimed:
        by = other(value)
        if by is not None:
            yield Mutation(kind=kind, piece=value, text=replace_value(answer, value, by), by=by)


def _emptied(answer: str) -> Iterator[Mutation]:
    for section in sections(answer):
        text = f"{answer[: section.start]}\n\n{answer[section.end :]}"
        if text.strip():
            yield Mutation(kind=MutationKind.EMPTY_SECTION, piece=section.title, text=text)


def _other_number(value: str, known_text: str, rng: random.Random) -> str | None:
    """Return a number of the same format that occurs nowhere; None if none was found."""
    for _ in range(_MAX_TRIES):
        changed = re.sub(r"\d+", lambda part: _digits(part[0], rng, clock=":" in value), value)
        if changed != value and not count_value(changed, known_text):
            return changed
    return None


def _digits(part: str, rng: random.Random, *, clock: bool) -> str:
    """Return as many digits as ``part`` has. A possible hour, minute, day of the month or year remains a valid one."""
    if len(part) == 2 and int(part) <= 59:
        return f"{rng.randint(10, 23 if clock else _LAST_DAY if int(part) <= 31 else 59):02}"
    if len(part) == 4 and part[:2] in ("18", "19", "20"):
        return f"{part[:2]}{rng.randint(0, 99):02}"
    return str(rng.randint(1, 9)) + "".join(str(rng.randint(0, 9)) for _ in part[1:])


def _other_name(value: str, known_text: str, rng: random.Random) -> str | None:
    """Return an invented name that occurs nowhere, one word for one word; None if all occur."""
    folded = known_text.casefold()
    free = [name for name in _INVENTED if not any(word in folded for word in name.casefold().split())]
    if not free:
        return None
    name = rng.choice(free)
    return name if len(value.split()) > 1 else name.split()[-1]
