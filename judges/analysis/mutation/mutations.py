"""Changes of an answer that are known to matter, made by a seed: the same answer and seed give the same changes. Pure.

Values are taken from what passing leaves claim, as far as the answer says them (not the task) and the judge read them.
New values are invented: they stand in no page and nowhere in the answer, so nothing can bear them out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cache.urls import canonical_key
from judges.analysis.mutation.leaves import Seen
from judges.analysis.mutation.pieces import (
    cited_keys,
    count,
    names,
    numbers,
    replaced,
    sections,
    with_citation_of,
    without_citation,
    without_urls,
)

_INVENTED = (
    "Orsolya Bexmoor", "Thaddeus Wrenfeld", "Quillon Abersoe", "Ysolde Marchbank", "Percival Duxbury",
    "Zephyrine Tolland", "Ignatius Farrowe", "Wilhelmina Vosk", "Barnaby Quorndon", "Eudora Hesketh",
)  # fmt: skip
_TRIES = 200
_LAST_DAY = 28


class Kind(StrEnum):
    """How an answer is changed."""

    UNTOUCHED = "untouched"
    """A blank line is added at the end. Nothing may move: whatever does moves by itself."""
    DROP_CITATION = "drop_citation"
    SWAP_NUMBER = "swap_number"
    SWAP_NAME = "swap_name"
    OTHER_PAGE = "other_page"
    """A page is cited in place of another."""
    EMPTY_SECTION = "empty_section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change. ``piece`` is what was changed, ``by`` what stands there now, ``text`` the whole changed answer."""

    kind: Kind
    piece: str
    text: str
    by: str = ""

    @property
    def title(self) -> str:
        match self.kind:
            case Kind.UNTOUCHED:
                return "nothing but a blank line added"
            case Kind.DROP_CITATION:
                return f"citation dropped: {self.piece}"
            case Kind.SWAP_NUMBER | Kind.SWAP_NAME:
                return f"{self.piece!r} replaced by {self.by!r}"
            case Kind.OTHER_PAGE:
                return f"{self.by} cited in place of {self.piece}"
            case Kind.EMPTY_SECTION:
                return f"section emptied: {self.piece}"


def mutations_of(
    answer: str,
    base: Seen,
    pages: Mapping[str, str],
    *,
    seed: int,
    per_kind: int | None,
    tells: Callable[[Mutation], bool],
) -> tuple[Mutation, ...]:
    """Changes of ``answer``, at most ``per_kind`` of each kind (None: all there are), the untouched one first.

    ``base`` is the run on the answer as it is, ``pages`` the texts of the pages it cites, by URL. ``tells``: whether a
    change must move a leaf; of several pages that could be cited in place of one, such a page is chosen.
    """
    rng = random.Random(seed)  # noqa: S311 - which changes are tried is no secret
    said = "\n".join([answer, *pages.values()])
    makers: tuple[Callable[[], Iterator[Mutation]], ...] = (
        lambda: _dropped(answer, base, pages),
        lambda: _swapped(Kind.SWAP_NUMBER, answer, base, numbers, lambda value: _other_number(value, said, rng)),
        lambda: _swapped(Kind.SWAP_NAME, answer, base, names, lambda value: _other_name(value, said, rng)),
        lambda: _moved(answer, base, pages, tells, rng),
        lambda: _emptied(answer),
    )
    found = [Mutation(kind=Kind.UNTOUCHED, piece="", text=answer + "\n\n")]
    for make in makers:
        every = list(make())
        if per_kind is not None and len(every) > per_kind:
            chosen = sorted(rng.sample(range(len(every)), per_kind))
            every = [every[place] for place in chosen]
        found += every
    return tuple(found)


def values_of(claim: str, base: Seen, answer: str) -> tuple[str, ...]:
    """The numbers and names of a claim that come from the answer: it says them, the judge read them, no task does."""
    bare = without_urls(answer)
    return tuple(
        value
        for value in (*numbers(claim), *names(claim))
        if not count(value, base.task) and count(value, bare) and read_count(value, base)
    )


def read_count(value: str, run: Seen) -> int:
    """How often a judge read a value out of the answer."""
    return sum(count(value, text) for text in run.values)


def _watched(base: Seen, pages: Mapping[str, str]) -> Sequence[str]:
    """The URLs of pages that passing leaves rest on."""
    keys = {key for leaf in base.passed for key in leaf.sources or ()}
    return [url for url in pages if canonical_key(url) in keys]


def _dropped(answer: str, base: Seen, pages: Mapping[str, str]) -> Iterator[Mutation]:
    for url in _watched(base, pages):
        text = without_citation(answer, url)
        if text is not None:
            yield Mutation(kind=Kind.DROP_CITATION, piece=url, text=text)


def _moved(
    answer: str, base: Seen, pages: Mapping[str, str], tells: Callable[[Mutation], bool], rng: random.Random
) -> Iterator[Mutation]:
    cited = cited_keys(answer)
    others = [url for url in pages if canonical_key(url) in cited]
    for url in _watched(base, pages):
        found: list[Mutation] = []
        for other in rng.sample(others, len(others)):
            text = None if canonical_key(other) == canonical_key(url) else with_citation_of(answer, url, other)
            if text is not None:
                found.append(Mutation(kind=Kind.OTHER_PAGE, piece=url, text=text, by=other))
        if found:
            yield next(filter(tells, found), found[0])


def _swapped(
    kind: Kind, answer: str, base: Seen, kinds: Callable[[str], Iterable[str]], other: Callable[[str], str | None]
) -> Iterator[Mutation]:
    claimed = dict.fromkeys(
        value for leaf in base.passed for value in values_of(leaf.claim or "", base, answer) if value in kinds(value)
    )
    for value in claimed:
        by = other(value)
        if by is not None:
            yield Mutation(kind=kind, piece=value, text=replaced(answer, value, by), by=by)


def _emptied(answer: str) -> Iterator[Mutation]:
    for section in sections(answer):
        text = f"{answer[: section.start]}\n\n{answer[section.end :]}"
        if text.strip():
            yield Mutation(kind=Kind.EMPTY_SECTION, piece=section.title, text=text)


def _other_number(value: str, said: str, rng: random.Random) -> str | None:
    """A number of the same shape that nobody says; None where all are taken."""
    for _ in range(_TRIES):
        found = re.sub(r"\d+", lambda part: _digits(part[0], rng, clock=":" in value), value)
        if found != value and not count(found, said):
            return found
    return None


def _digits(part: str, rng: random.Random, *, clock: bool) -> str:
    """As many digits as ``part`` has; what may be an hour, a minute, a day of the month or a year stays one."""
    if len(part) == 2 and int(part) <= 59:
        return f"{rng.randint(10, 23 if clock else _LAST_DAY if int(part) <= 31 else 59):02}"
    if len(part) == 4 and part[:2] in ("18", "19", "20"):
        return f"{part[:2]}{rng.randint(0, 99):02}"
    return str(rng.randint(1, 9)) + "".join(str(rng.randint(0, 9)) for _ in part[1:])


def _other_name(value: str, said: str, rng: random.Random) -> str | None:
    """An invented name of as many words that nobody bears; None where all are taken."""
    folded = said.casefold()
    free = [name for name in _INVENTED if not any(word in folded for word in name.casefold().split())]
    if not free:
        return None
    name = rng.choice(free)
    return name if len(value.split()) > 1 else name.split()[-1]
