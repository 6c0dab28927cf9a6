"""Reading of results: tree, scores, leaves with their evidence, deep links, keyboard and downloads."""

from __future__ import annotations

import json

import pytest

from tests.browser.dashboard.conftest import Reader, Served
from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, group, leaf, page_entry, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

URL = "https://rivers.example/ahne"
WALL = "https://walls.example/"
PAGE = "Rivers\n\nThe river Ahne flows through Vellmar. It is 21 kilometres long.\n\n" + "Banks and meadows. " * 60
ANSWER = f"""# Rivers

The river that flows through Vellmar is the Ahne ([source]({URL})). It is 25 kilometres long.
It has nine bridges. I found that elsewhere.
"""


async def judged(served: Served) -> str:
    """Judge one answer with a leaf of every kind, and return the id of its result."""
    page = await served.capture(URL, PAGE, title="The river Ahne")
    quote = served.quote(page, URL, "The river Ahne flows through Vellmar.")

    def rubric():
        return rubric_of(
            group(
                "river",
                leaf("named", critical=True),
                leaf("through", claim="The river Ahne flows through Vellmar", sources=[URL], quotes=[quote], weight=2),
                leaf("length", FAILED, claim="The Ahne is 25 km long", sources=[URL], votes=(False, False, True)),
                weight=2,
            ),
            group(
                "bridge",
                leaf("given", FAILED, critical=True),
                leaf("year", SKIPPED, claim="It was built in 1764", sources=[URL], blocked_by="bridge/given"),
            ),
            leaf(
                "town", NOT_JUDGED, claim="Vellmar has 18,000 people", sources=["https://walls.example/"], votes=(None,)
            ),
            task_id="rivers",
        )

    pages = [page_entry(URL, page_id=page), page_entry(WALL, outcome="login_wall")]
    served.judging.register(ANSWER, rubric, pages=pages)
    return await served.result("walker", ANSWER)


async def test_tree_shows_points_only_where_they_were_lost(served: Served, reader: Reader):
    result = await judged(served)
    await reader.go(f"/results/{result}")
    rows = reader.page.locator("#tree .node")
    said = {
        await row.get_attribute("id"): " ".join((await row.text_content() or "").split()) for row in await rows.all()
    }
    assert said["river/named"].endswith("required")
    assert said["river/through"].endswith("\u00d72")  # a passed leaf has lost no points
    assert said["river/length"].endswith("\u22120.17") and said["river"].endswith("\u22120.17")
    assert said["bridge/given"].endswith("\u22120.25required: not met; bridge counts 0")
    assert said["bridge/year"].endswith("given is required and not met: counts 0")
    assert said["town"].endswith("\u22120.00\u20130.25") and said["root"].endswith("0.33\u20130.58")
    assert "not judged" in (await rows.last.locator(".unseen").text_content() or "")


async def test_scores_and_first_failed_claim_are_shown_and_open_claims_are_listed_on_demand(
    served: Served, reader: Reader
):
    result = await judged(served)
    await reader.go(f"/results/{result}")
    assert await reader.page.locator(".leaf-panel").get_attribute("data-key") == "river/length"
    assert await reader.page.locator("#tree .chosen").get_attribute("id") == "river/length"
    assert (await reader.text("#detail")).count("The Ahne is 25 km long") == 1
    assert await reader.page.locator(".prose .on").count() == 1
    await reader.go(f"/results/{await judged(served)}")
    assert await reader.text(".result-score > .score") == "0.33\u20130.58"
    assert not await reader.page.locator(".about dl").is_visible()
    await reader.page.click(".about summary")
    folded = await reader.text(".about dl")
    assert (
        folded.startswith("Score 0.33\u20130.58") and "Strict 0.33\u20130.58" in folded and "Compatible 0.33" in folded
    )
    await reader.go(f"/results/{await judged(served)}")
    summary = await reader.text(".open-leaves summary")
    assert summary == "1 claim was not judged the score stays between 0.33 and 0.58"
    await reader.page.click(".open-leaves summary")
    await reader.page.wait_for_selector(".open-leaves tbody tr")
    open_leaf = await reader.text(".open-leaves tbody tr")
    assert open_leaf.startswith("town A captcha, sign-in form or consent dialog appeared instead of the cited page")
    assert open_leaf.endswith("0.33 0.58")
    await reader.page.click('.open-leaves td a:has-text("Pages")')
    await reader.page.wait_for_selector(f'.preview-body[data-url="{WALL}"]')


async def test_leaf_panel_shows_claim_votes_quote_and_cited_sentence(served: Served, reader: Reader):
    await reader.go(f"/results/{await judged(served)}")
    await reader.page.click('#tree [data-leaf="river/through"]')
    await reader.page.wait_for_selector('.leaf-panel[data-key="river/through"] .passage mark')
    panel = await reader.text("#detail")
    assert "The river Ahne flows through Vellmar" in await reader.text(".leaf-panel .claim")
    assert await reader.text(".passage mark") == "The river Ahne flows through Vellmar."
    assert "because the page says so" in panel
    await reader.page.click(".more-facts summary")
    facts = await reader.text(".more-facts")
    assert "verify_page@1" in facts and "$0.0031" in facts and "adds 0.67 of 0.67 (66.7 %)" in facts
    assert "2 times" in await reader.text(".votes")
    assert await reader.text(".prose .on") == "The river that flows through Vellmar is the Ahne (source)."
    picture = reader.page.locator(".shots img")
    await picture.scroll_into_view_if_needed()
    await reader.wait_until("document.querySelector('.shots img').naturalWidth > 0")
    assert "The frame marks the quote" in await reader.text("figcaption")
    shot = await reader.page.locator(".shot").bounding_box()
    frame = await reader.page.locator(".frames rect").bounding_box()
    assert shot is not None and frame is not None
    start = PAGE.index("The river Ahne flows") / 80  # a line of eighty characters takes 70 % of the width
    assert frame["x"] - shot["x"] == pytest.approx(shot["width"] * (0.03 + 0.7 * start), abs=3)
    assert frame["y"] - shot["y"] == pytest.approx(shot["height"] * 0.02, abs=3)
    assert reader.page_errors == [] and reader.external_requests == []


async def test_url_of_a_leaf_opens_it_again(served: Served, reader: Reader):
    result = await judged(served)
    await reader.go(f"/results/{result}")
    await reader.page.click('#tree [data-leaf="bridge/year"]')
    await reader.page.wait_for_selector('.leaf-panel[data-key="bridge/year"]')
    address = reader.page.url
    assert address.endswith("?leaf=bridge%2Fyear")
    await reader.page.goto(address)
    assert "Not judged because of bridge/given" in await reader.text("#detail")
    await reader.go(f"/results/{result}#river/length")
    await reader.page.wait_for_selector('.leaf-panel[data-key="river/length"]')
    await reader.page.go_back()
    await reader.page.wait_for_selector('.leaf-panel[data-key="bridge/year"]')


async def test_keyboard_moves_through_the_leaves(served: Served, reader: Reader):
    await reader.go(f"/results/{await judged(served)}?leaf=river%2Fnamed")
    seen: list[str | None] = []
    for key in ("j", "j", "n", "N", "k", "k", "k"):
        before = reader.page.url
        await reader.page.keyboard.press(key)
        if len(seen) < 6:
            await reader.wait_until(f"location.href !== {json.dumps(before)}")
        await reader.wait_until(
            "document.querySelector('.leaf-panel')?.dataset.key"
            " === document.querySelector('#tree [aria-current]').dataset.leaf"
        )
        seen.append(await reader.page.locator(".leaf-panel").get_attribute("data-key"))
    expected = ["through", "length", "bridge/given", "length", "through", "named", "named"]
    assert seen == [key if "/" in key else f"river/{key}" for key in expected]
    assert await reader.page.text_content("#announcement") == "river/named, passed"
    assert await reader.page.evaluate("document.activeElement.dataset.leaf") == "river/named"
    await reader.page.locator('[id="bridge"] .fold').focus()
    await reader.page.keyboard.press("Enter")
    assert not await reader.page.locator('[id="bridge/year"]').is_visible()
    await reader.page.locator("#tree-title").click()
    await reader.page.keyboard.press("?")
    await reader.page.uncheck("#keys-on")
    await reader.page.locator("#tree-title").click()
    await reader.page.keyboard.press("j")
    assert await reader.page.text_content("#announcement") == "river/named, passed"
