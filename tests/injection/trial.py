"""Trials of cases with every stand-in judge, in both prompt styles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator

from cache.errors import CacheError
from judges.grounding.quotes import find_quotes
from judges.prompting.rendering import Style
from tests.injection.cases import Case, load_cases
from tests.injection.invariants import broken_invariants
from tests.injection.material import Material, Site, build
from tests.injection.rendered import build_rendered
from tests.injection.sources import build_source
from tests.injection.stand_in_judges import GullibleJudge, HonestJudge, IsolationJudge, Judge
from tests.injection.world import World, nonce_of_another_run, strictly_supported

CASES = load_cases()
IN_BROWSER = frozenset({"html", "browser"})
AT_ONCE = 6


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
    if place == "source":
        return build_source(case, site, benign=benign)
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


async def attacked(world: World, material: Material) -> list[str]:
    """Return the problems of one attack, under each judge and style."""
    pictures = await world.pictures(material)
    wrong: list[str] = []
    for style in styles(material):
        for judge in _judges(material, pictures):
            judgement = await world.judged(material, judge, style)
            wrong += broken_invariants(material, style, judge.requests)
            honest_about_answer = isinstance(judge, HonestJudge) and material.sources is None
            if strictly_supported(judgement) and not honest_about_answer:
                wrong.append(f"{material.name}, {style}: {type(judge).__name__} got it counted")
    return wrong


async def changed(world: World, twin: Material) -> list[str]:
    """Return what an honest judge no longer supports in a twin, and problems of its requests."""
    wrong: list[str] = []
    for style in styles(twin):
        judge = HonestJudge(evidence=twin.evidence, read=twin.read)
        judgement = await world.judged(twin, judge, style)
        wrong += [] if strictly_supported(judgement) else [f"{twin.name}, {style}: no longer counts"]
        wrong += broken_invariants(twin, style, judge.requests)
    return wrong


async def counts_by_quote_alone(world: World, material: Material) -> list[str]:
    """Return the case if a verdict of the gullible judge would count as soon as one of its quotes is in the page."""
    judge = GullibleJudge(
        payloads=material.reads, pictures=await world.pictures(material), quotes=material.quotes, obeyed=material.obeyed
    )
    await world.judged(material, judge, Style.NATIVE)
    said = [vote.quotes for vote in judge.votes if vote.result]
    for url in material.sources or ():
        try:
            page = await world.preparer.prepare(await world.cache.evidence_for(url))
        except CacheError:
            continue
        if any(find_quotes(page.index.folded, page.text, quotes, page_id=page.page_id) for quotes in said):
            return [material.case.id]
    return []


def styles(material: Material) -> list[Style]:
    """Return the prompt styles. Public scripts receive extractions unchanged, so class M applies to native judges
    only.
    """
    return [Style.NATIVE] if material.place == "extraction" else list(Style)


def _judges(material: Material, pictures: dict[str, str]) -> Iterator[Judge]:
    yield GullibleJudge(
        payloads=material.reads,
        pictures=pictures,
        quotes=material.quotes,
        obeyed=material.obeyed,
        read=material.read,
    )
    yield HonestJudge(evidence=material.evidence, read=material.read)
    if material.place != "quotes":  # in place "quotes" the judge itself is the attack, whatever it is sent
        yield IsolationJudge(payloads=material.reads, obeyed=material.obeyed, read=material.read)
