"""Review of doubtful leaves: override, withdraw, and agreement with the judge."""

from __future__ import annotations

import pytest

from tests.browser.dashboard.conftest import Reader, Served
from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

WHY = "The second paragraph names him, in German."


def rubric():
    source = ["https://a.example/"]
    return rubric_of(
        leaf("gate", FAILED, claim="He was born in Paris", sources=source, critical=True, votes=(False, True, False)),
        leaf("behind", SKIPPED, claim="He died there", sources=source, blocked_by="gate"),
        leaf("open", NOT_JUDGED, claim="He taught", sources=source),
        leaf("fine", claim="He wrote", sources=source),
        task_id="rivers",
    )


async def judged(served: Served, agent: str) -> str:
    return await served.result(agent, served.judging.register(f"settled for {agent}", rubric))


async def override(reader: Reader, outcome: str, reason: str = WHY, by: str = "Ada") -> None:
    await reader.page.locator("details.add-override > summary").click()
    await reader.page.locator(f'.add-override input[value="{outcome}"]').check()
    await reader.page.locator('.add-override textarea[name="reason"]').fill(reason)
    await reader.page.locator('.add-override input[name="by"]').fill(by)
    await reader.page.locator(".add-override button").click()
    await reader.page.locator(".override.in-force").wait_for()


async def test_override_of_a_doubtful_leaf_shows_in_panel_tree_and_score(served: Served, reader: Reader):
    result = await judged(served, "settler")
    await reader.go("/review?agent=settler")
    assert "the votes are split, 1 to 2" in await reader.text("main")
    await reader.page.get_by_role("link", name="gate", exact=True).click()
    await override(reader, "passed")
    assert reader.page.url.split("#")[0].endswith(f"/results/{result}?leaf=gate")
    word = await reader.text(".override.in-force")
    assert "passed" in word and "Ada" in word and WHY in word and "the judge's outcome is failed" in word
    row = await reader.text('#tree .node:has([data-leaf="gate"])')
    assert "failed" in row and "passed (override)" in row
    # The judge's own score stays 0. With the gate open, the score of the leaves behind it is unknown.
    card = await reader.text(".result-score")
    assert card.startswith("0.00") and "with overrides 0.33\u20131.00" in card
    await reader.page.click(".about summary")
    assert "1 leaf; the scores and the tree show the judge's verdicts" in await reader.text(".about")
    await reader.go("/review?agent=settler")
    assert "gate" not in await reader.text("main table")
    assert "1 overridden claim is not shown" in await reader.text("main")
    await reader.go("/review?agent=settler&settled=true")
    assert "gate" in await reader.text("main table")
    assert reader.page_errors == []
