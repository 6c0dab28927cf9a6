"""94 attacks on the judge: none makes a claim count in the strict score, and their benign twins still count.

Class F and the browser's games of class J are tried in ``test_in_the_browser``, on the same data.
"""

from __future__ import annotations

import pytest

from tests.injection.cases import SIZES
from tests.injection.trial import CASES, attacked, changed, materials, wrong_with
from tests.injection.world import open_world

MAX_CHANGED_TWINS = 0.02


def test_the_corpus_is_complete():
    expected = [f"{letter}{number}" for letter, size in SIZES.items() for number in range(1, size + 1)]
    assert sorted(case.id for case in CASES) == sorted(expected)
    assert len(expected) == 94


def test_every_case_is_tried_somewhere():
    assert [case.id for case in CASES if not case.places] == []
    assert sum(len(case.places) for case in CASES) >= 150


@pytest.mark.parametrize("letter", [letter for letter in SIZES if letter != "F"])
async def test_no_attack_makes_a_claim_count(letter: str):
    async with open_world() as world:
        found = materials(world.site, letter, benign=False)
        assert {material.case.letter for material in found} == {letter}
        assert await wrong_with(world, found, attacked) == []


async def test_benign_twins_still_count():
    async with open_world() as world:
        twins = materials(world.site, SIZES, benign=True)
        wrong = await wrong_with(world, twins, changed)
    assert len(wrong) <= MAX_CHANGED_TWINS * len(twins), wrong
