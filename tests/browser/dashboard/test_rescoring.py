"""Rescore in the dashboard: started with the form, and shown with old and new scores, ranks and flipped leaves."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from rubrics.rubric import Rubric
from rubrics.verdict import Outcome
from tests.browser.dashboard.conftest import PHONE, OpenDashboard, Reader, Served, open_reader
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, page_entry, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

URL = "https://bridges.example/"
HOSTILE = "<img src=x onerror=alert(1)> " * 6
SCRIPTS = [{"sha256": letter * 64, "name": "rivers", "version": letter} for letter in "de"]


def rubric(*outcomes: Outcome) -> Rubric:
    names = ("length of the river", "source of the river", "mouth of the river")
    leaves = [
        leaf(f"leaf_{nth}", outcome, claim=f"The {name} {HOSTILE}", sources=[URL])
        for nth, (name, outcome) in enumerate(zip(names, outcomes, strict=True))
    ]
    return rubric_of(*leaves, task_id="rivers")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rescored(open_dashboard: OpenDashboard, chromium: Browser) -> AsyncIterator[tuple[Served, str]]:
    """Yield a service, and the path of a rescore that was started with the form and has changed the ranks."""
    changes = {
        "otter": [(PASSED, PASSED, PASSED), (FAILED, FAILED, PASSED)],
        "heron": [(PASSED, FAILED, PASSED), (PASSED, PASSED, PASSED)],
        "stork": [(PASSED, FAILED, FAILED), (NOT_JUDGED, FAILED, FAILED)],
    }
    pages = [page_entry(URL)]
    async with open_dashboard() as served:
        for script, side in zip(SCRIPTS, (0, 1), strict=True):
            for agent, outcomes in changes.items():
                text = f"{agent} says so"
                served.judging.register(text, partial(rubric, *outcomes[side]), script=script, pages=pages)
                if side == 0:
                    await served.result(agent, text)
        async with open_reader(chromium, served.url) as reader:
            await reader.go("/rescores")
            await reader.page.select_option('select[name="task_id"]', "rivers")
            await reader.page.fill('input[name="budget_usd"]', "0.5")
            await reader.page.click('button:has-text("Rescore")')
            await reader.page.wait_for_selector("h1:has-text('rivers')")
            path = reader.page.url.removeprefix(served.url)
            # The page polls until all jobs have ended, and then shows the whole comparison.
            await reader.page.wait_for_selector(".figures:has-text('3 of 3')")
            assert (reader.page_errors, reader.external_requests) == ([], [])
        yield served, path


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser, rescored: tuple[Served, str]) -> AsyncIterator[Reader]:
    served, path = rescored
    async with open_reader(chromium, served.url) as one:
        await one.go(path)
        yield one


async def rows(reader: Reader, label: str) -> list[str]:
    found = await reader.page.locator(f'[aria-label="{label}"] tbody tr').all_inner_texts()
    return [" ".join(row.split()) for row in found]


async def test_ranks_scores_and_flipped_leaves_are_shown_and_answers_can_be_downloaded(reader: Reader):
    agents = await rows(reader, "Agents")
    assert agents[0].startswith("heron 2 → 1 1 0.67 1.00 +0.33")
    assert agents[1].startswith("otter 1 → 2 1 1.00 0.33 \u22120.67")
    assert agents[2].startswith("stork 3 1 0.33 0.00\u20130.33 open")
    answers = await rows(reader, "Answers")
    assert len(answers) == 3
    assert any(row.startswith("stork") and "incomplete" in row for row in answers)
    assert "4" in await reader.text(".figures")
    async with reader.page.expect_download() as download:
        await reader.page.click('h2:has-text("Answers") a[download]')
    table = list(csv.DictReader((await (await download.value).path()).read_text("utf-8-sig").splitlines()))
    assert {row["agent"]: float(row["now_low"]) for row in table}["heron"] == 1.0
    assert {row["flipped"] for row in table} == {"1", "2"}
    flips = await rows(reader, "Flipped claims")
    assert len(flips) == 4
    assert any("otter" in row and "passed failed" in row and "judge the judge's file changed" in row for row in flips)
    await reader.page.locator('[aria-label="Flipped claims"] tbody th a').first.click()
    await reader.page.wait_for_selector(".leaf-panel")


async def test_pages_are_accessible_and_fit(chromium: Browser, rescored: tuple[Served, str]):
    served, path = rescored
    async with open_reader(chromium, served.url, size=PHONE, dark=True) as reader:
        for page in ("/rescores", path):
            await reader.go(page)
            assert await reader.violations() == []
            assert await reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (reader.page_errors, reader.external_requests) == ([], [])
