"""Trials of cases with every stand-in judge, in both prompt styles.

Each request must also satisfy invariants that do not depend on the reply.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Collection, Iterator

from judges.llm.client import LLMRequest
from judges.prompting.page_view import MAX_LINKS_CHARS
from judges.prompting.rendering import Style
from judges.tokenizers import TRUNCATION_MARKER, first_tokens
from tests.injection.cases import Case, load_cases
from tests.injection.material import Material, Site, build
from tests.injection.reading import SentRequest, can_read, read_request
from tests.injection.rendered import build_rendered
from tests.injection.stand_in_judges import GullibleJudge, HonestJudge, IsolationJudge, Judge
from tests.injection.world import World, nonce_of_another_run, strictly_supported

CASES = load_cases()
IN_BROWSER = frozenset({"html", "browser"})
AT_ONCE = 6
ROLES = {Style.NATIVE: ("system", "user"), Style.COMPAT: ("user",)}
ROOM_FOR_TAGS = 5_000


def materials(site: Site, letters: Collection[str], *, benign: bool, in_browser: bool = False) -> list[Material]:
    """Return all materials of these classes that need a browser, or that need none."""
    return [
        _made(case, place, site, benign=benign)
        for case in CASES
        for place in case.places
        if case.letter in letters and (place in IN_BROWSER) is in_browser
    ]


def _made(case: Case, place: str, site: Site, *, benign: bool) -> Material:
    if place in IN_BROWSER:
        return build_rendered(case, place, site, benign=benign)
    first = build(case, place, site, benign=benign)
    return build(case, place, site, benign=benign, stale_nonce=nonce_of_another_run(first))


async def find_problems(
    world: World, found: list[Material], trying: Callable[[World, Material], Awaitable[list[str]]]
) -> list[str]:
    """Return all problems of these materials; several are tried concurrently."""
    turn = asyncio.Semaphore(AT_ONCE)
    for material in found:
        world.web.pages |= material.pages

    async def one(material: Material) -> list[str]:
        async with turn:
            return await trying(world, material)

    return [wrong for several in await asyncio.gather(*map(one, found)) for wrong in several]


async def attack_problems(world: World, material: Material) -> list[str]:
    """Return the problems of one attack, under each judge and style."""
    wrong: list[str] = []
    for style in Style:
        for judge in _judges(material):
            judgement = await world.judge(material, judge, style)
            wrong += broken_invariants(material, style, judge.requests)
            honest_about_answer = isinstance(judge, HonestJudge) and material.sources is None
            if strictly_supported(judgement) and not honest_about_answer:
                wrong.append(f"{material.name}, {style}: {type(judge).__name__} got it counted")
    return wrong


async def benign_problems(world: World, twin: Material) -> list[str]:
    """Return what an honest judge no longer supports in a twin, and problems of its requests."""
    wrong: list[str] = []
    for style in Style:
        judge = HonestJudge(evidence=twin.evidence)
        judgement = await world.judge(twin, judge, style)
        wrong += [] if strictly_supported(judgement) else [f"{twin.name}, {style}: no longer counts"]
        wrong += broken_invariants(twin, style, judge.requests)
    return wrong


def _judges(material: Material) -> Iterator[Judge]:
    yield GullibleJudge(payloads=material.reads, quotes=material.quotes)
    yield HonestJudge(evidence=material.evidence)
    if material.place != "quotes":  # in place "quotes" the judge itself is the attack, whatever it is sent
        yield IsolationJudge(payloads=material.reads)


def broken_invariants(material: Material, style: Style, requests: list[LLMRequest]) -> list[str]:
    """Return one sentence per violated invariant."""
    problems = {problem for request in requests for problem in _problems(material, style, request)}
    return [f"{material.name}, {style}: {problem}" for problem in sorted(problems)]


def _problems(material: Material, style: Style, request: LLMRequest) -> Iterator[str]:
    sent = read_request(request)
    if sent.roles != ROLES[style]:
        yield f"roles are {sent.roles}"
    if style is Style.NATIVE and request.messages[0]["content"] != sent.rules:
        yield "the system message is not the rules and nothing else"
    if sent.outside.strip():
        yield f"outside of the blocks stands {sent.outside.strip()[:80]!r}"
    nonces = [block.nonce for block in sent.blocks]
    if len(set(nonces)) != len(nonces):
        yield "two blocks share a nonce"
    if any(sent.text.count(nonce) != 2 for nonce in nonces):
        yield "a nonce stands elsewhere than in its two tags"
    yield from _visible_payloads(material, sent)
    page = sent.block("page")
    if _has_too_many_tokens(page.removesuffix(TRUNCATION_MARKER)):
        yield f"{len(page)} characters of a page are sent"
    answers = 2 * len(material.answer) + 2 * len(material.case.scenario.task)
    if len(sent.text) > len(page) + MAX_LINKS_CHARS + answers + len(sent.rules) + ROOM_FOR_TAGS:
        yield f"{len(sent.text)} characters are sent"


@functools.lru_cache(maxsize=8)
def _has_too_many_tokens(page: str) -> bool:
    """Return whether the text of a page exceeds the limit. The same page is sent in many requests."""
    return first_tokens(page) is not None


def _visible_payloads(material: Material, sent: SentRequest) -> Iterator[str]:
    """Yield a problem if a hidden payload is visible in a block other than the claim."""
    shown = [block.text for block in sent.blocks if block.label != "claim"]
    if material.case.hidden and any(can_read(payload, text) for payload in material.reads for text in shown):
        yield "the hidden payload is shown"
