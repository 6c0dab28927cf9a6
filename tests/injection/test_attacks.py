"""Attacks on the judge: none makes a claim count in the strict score, and their benign twins still count.

Classes F and J need a browser and are tested in ``test_in_the_browser``, with the same data.
"""

from __future__ import annotations

import pytest

from tests.injection.trial import attack_problems, benign_problems, find_problems, materials
from tests.injection.world import open_world

LETTERS = "ABCDEGKL"
MAX_CHANGED_TWINS = 0.02


@pytest.mark.parametrize("letter", LETTERS)
async def test_no_attack_makes_a_claim_count(letter: str):
    async with open_world() as world:
        found = materials(world.site, letter, benign=False)
        assert {material.case.letter for material in found} == {letter}
        assert await find_problems(world, found, attack_problems) == []


async def test_benign_twins_still_count():
    async with open_world() as world:
        twins = materials(world.site, LETTERS, benign=True)
        wrong = await find_problems(world, twins, benign_problems)
    assert len(wrong) <= MAX_CHANGED_TWINS * len(twins), wrong
