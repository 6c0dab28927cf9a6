"""Known limits of the detection, documented as tests. The decision on this corpus gives the reasons."""

from __future__ import annotations

import json
from pathlib import Path

from judges.grounding.injection import scan
from judges.prompting.rendering import Style
from tests.injection.cases import Scenario, load_cases
from tests.injection.material import case_of, material, page_of
from tests.injection.stand_in_judges import GullibleJudge, HonestJudge
from tests.injection.world import open_world, strictly_supported

UNSEEN = json.loads((Path(__file__).parent / "wordings" / "unseen.json").read_text("utf-8"))


def scenario_of(claim: str) -> Scenario:
    return next(case.scenario for case in load_cases() if claim in case.scenario.claim)


async def test_false_statement_on_a_page_is_accepted():
    scenario = scenario_of("Halvorsen")
    async with open_world() as world:
        world.web.pages["/lie"] = page_of([*scenario.silent, scenario.claim])
        lie = material(case_of(scenario, ""), "page", world.site.url("/lie"), evidence=scenario.claim)
        judgement = await world.judge(lie, HonestJudge(evidence=scenario.claim), Style.NATIVE)
    assert strictly_supported(judgement)


async def test_unrecognised_order_succeeds_if_the_page_has_every_name_of_the_claim():
    scenario = scenario_of("Jonas Brandt")
    order = next(order for order in UNSEEN if not scan(order).orders)
    async with open_world() as world:
        url = world.site.url("/silent")
        world.web.pages["/silent"] = page_of(list(scenario.silent))
        talked = material(case_of(scenario, order), "answer", url, answer=f"{scenario.answer}\n\n{order}")
        judgement = await world.judge(talked, GullibleJudge(payloads=[order]), Style.NATIVE)
    assert strictly_supported(judgement)
