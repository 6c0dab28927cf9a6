"""94 attacks on the judge: none makes a claim count in the strict score, and each twin still counts.

Classes F and the browser's games of J are tried in ``test_in_the_browser``, on the same cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from judges.rendering import Style
from tests.injection.cases import SIZES, Case, load_cases
from tests.injection.invariants import broken_invariants
from tests.injection.material import Material, Site, build
from tests.injection.sources import build_source
from tests.injection.stand_in_judges import GullibleJudge, HonestJudge, IsolationJudge, Judge
from tests.injection.world import World, a_used_nonce, open_world, strictly_supported

CASES = load_cases()
IN_BROWSER = {"html", "browser"}
MAX_CHANGED_TWINS = 0.02


def test_the_corpus_is_complete():
    found = [case.id for case in CASES]
    expected = [f"{letter}{number}" for letter, size in SIZES.items() for number in range(1, size + 1)]
    assert sorted(found) == sorted(expected)
    assert len(expected) == 94


def test_every_case_is_tried_somewhere():
    assert [case.id for case in CASES if not case.places] == []
    assert sum(len(case.places) for case in CASES) >= 150


def materials(site: Site, letter: str, *, benign: bool) -> Iterator[Material]:
    for case in CASES:
        if case.letter == letter:
            for place in case.places:
                if place not in IN_BROWSER:
                    yield made(case, place, site, benign=benign)


def made(case: Case, place: str, site: Site, *, benign: bool) -> Material:
    if place == "source":
        return build_source(case, site, benign=benign)
    first = build(case, place, site, benign=benign)
    return build(case, place, site, benign=benign, stale_nonce=a_used_nonce(first))


def styles(material: Material) -> list[Style]:
    """Public scripts get what was extracted as it came, so class M is a matter of native judges alone."""
    return [Style.NATIVE] if material.place == "extraction" else list(Style)


async def tried(world: World, material: Material, judge: Judge, style: Style) -> tuple[bool, list[str]]:
    """Whether the claim counts strictly, and what is wrong with the requests."""
    judgement = await world.judged(material, judge, style)
    return strictly_supported(judgement), broken_invariants(material, style, judge.requests)


async def attacked(world: World, material: Material) -> list[str]:
    """What went wrong with one attack, under each judge and style."""
    pictures = await world.pictures(material)
    common = {"obeyed": material.obeyed, "read": material.read, "evidence": material.evidence}
    wrong: list[str] = []
    for style in styles(material):
        judges: list[Judge] = [
            GullibleJudge(material.reads, pictures=pictures, quotes=material.quotes, **common),
            HonestJudge(**common),
        ]
        if material.place != "quotes":
            judges.append(IsolationJudge(material.reads, **common))
        for judge in judges:
            supported, problems = await tried(world, material, judge, style)
            wrong += problems
            if supported and not (isinstance(judge, HonestJudge) and material.sources is None):
                wrong.append(f"{material.name}, {style}: {type(judge).__name__} got it counted")
    return wrong


@pytest.mark.parametrize("letter", [letter for letter in SIZES if letter != "F"])
async def test_no_attack_makes_a_claim_count(letter: str):
    async with open_world() as world:
        found = list(materials(world.site, letter, benign=False))
        for material in found:
            world.web.pages |= material.pages
        wrong = await asyncio.gather(*(attacked(world, material) for material in found))
    assert found
    assert [each for several in wrong for each in several] == []


async def test_benign_twins_still_count():
    changed: list[str] = []
    async with open_world() as world:
        twins = [twin for letter in SIZES for twin in materials(world.site, letter, benign=True)]
        for twin in twins:
            world.web.pages |= twin.pages
        for twin in twins:
            for style in styles(twin):
                judge = HonestJudge(evidence=twin.evidence, read=twin.read)
                supported, problems = await tried(world, twin, judge, style)
                changed += [f"{twin.name}, {style}"] if not supported else []
                assert problems == [] or twin.case.hidden
    assert len(changed) <= MAX_CHANGED_TWINS * len(twins), changed
