"""Comparison of agents and of two runs, from the figures of the first page to single leaves."""

from __future__ import annotations

import csv
from functools import partial

import pytest

from rubrics.rubric import Rubric
from tests.browser.dashboard.conftest import TASKS, Reader, Served
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, leaf, page_entry, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

URL, OTHER = "https://bridges.example/", "https://other.example/"


def rubric_on(run: str, task: str) -> Rubric:
    """Return a rubric with a leaf that the change repaired, one whose page changed, and one not judged on Tuesday."""
    tuesday = run == "tuesday"
    return rubric_of(
        leaf("said", PASSED if tuesday else FAILED, claim=f"{run} says so", sources=[URL]),
        leaf("page", FAILED if tuesday else PASSED, claim="the same", sources=[URL]),
        leaf("third", NOT_JUDGED if tuesday and task == "towers" else PASSED, claim="open", sources=[OTHER]),
        task_id=task,
    )


async def two_runs(served: Served, agent: str) -> None:
    """Judge an agent before and after a change, on three tasks."""
    for run, sha in (("monday", "a" * 64), ("tuesday", "b" * 64)):
        for task in TASKS:
            pages = [page_entry(URL, sha256=sha), page_entry(OTHER)]
            changes = {"pages": pages, "answer_sha256": sha}
            text = served.judging.register(f"{agent} {run} {task}", partial(rubric_on, run, task), **changes)
            await served.result(agent, text, task=task, run=run)


async def test_first_page_is_a_matrix_of_runs_and_tasks(served: Served, reader: Reader):
    await two_runs(served, "walker")
    await reader.go("/")
    rows = [" ".join(row.split()) for row in await reader.page.locator("table.agents tbody tr").all_inner_texts()]
    mine = [row for row in rows if row.startswith("walker")]
    # Two tasks at 2/3, one between 1/3 and 2/3. Runs are kept apart.
    assert mine[0].startswith("walker monday 0.67 0.00 0.67 0.67 0.67 3 ")
    assert mine[1].startswith("walker tuesday 0.56\u20130.67 0.00 0.67 0.67 0.33\u20130.67 3, 1 incomplete")
    legend = await reader.text(".legend")
    assert legend.startswith("Mean score over the 3 tasks shown") and "could still change" in legend
    titles = await reader.page.locator("table.agents thead [title]").evaluate_all("all => all.map(one => one.title)")
    assert "Share of answers with score 1" in titles
    # Only the selected tasks count.
    await reader.page.click(".task-filter summary")
    await reader.page.check('.task-filter [value="towers"]')
    await reader.page.wait_for_selector('.legend:has-text("over the 1 task shown")')
    assert reader.page.url.endswith("/?task=towers")
    assert "0.33\u20130.67" in await reader.text(
        "table.agents tbody tr:has-text('tuesday') td[data-label='Mean score']"
    )
    assert await reader.violations() == []
    assert reader.page_errors == []


async def test_agent_has_its_runs_results_and_statistics_and_its_doubts_are_sorted(served: Served, reader: Reader):
    await two_runs(served, "pacer")
    await reader.go("/agents/pacer")
    assert await reader.page.locator("section table, [aria-label='Runs'] tbody tr").count() == 2
    assert await reader.page.locator("[aria-label='Results'] tbody tr").count() == 6
    assert "0.33\u20130.67" in await reader.text("[aria-label='Results'] tbody")
    trend = await reader.page.locator(".trend").get_attribute("aria-label")
    assert trend == "Trend: monday: 0.67, tuesday: 0.56"
    assert await reader.violations() == []
    await reader.page.click("a:has-text('Statistics')")
    figures = await reader.text(".figures")
    assert "pass@2" in figures and "of 6 answers" in figures and "$" in figures
    assert await reader.violations() == []

    def rubric():
        return rubric_of(
            leaf("split", claim="x", sources=[URL], votes=(True, False, True), weight=4),
            leaf("sure", claim="y", sources=None, votes=(True, True)),
            leaf("silent", NOT_JUDGED, claim="z", sources=[URL], votes=(None,), weight=2),
            task_id="rivers",
        )

    await served.result("doubter", served.judging.register("doubted", rubric))
    await reader.go("/review?agent=doubter")
    rows = [" ".join(row.split()) for row in await reader.page.locator("tbody tr").all_inner_texts()]
    assert rows[0].startswith("split") and "2 to 1" in rows[0] and "57.1 %" in rows[0]
    assert rows[1].startswith("silent") and "it was not judged" in rows[1]
    await reader.page.click("tbody th a")
    await reader.page.wait_for_selector('.leaf-panel[data-key="split"]')


async def test_two_runs_are_compared_leaf_by_leaf_with_causes(served: Served, reader: Reader):
    await two_runs(served, "changer")
    await reader.go("/agents/changer")
    await reader.page.click("text=Compare the two newest runs")
    outcome = await reader.text(".comparison")
    assert outcome.startswith(
        "Too few tasks to tell 2 tasks have a certain score on both sides; a test needs at least 6."
    )
    assert (
        "Baseline changer@monday" in outcome
        and "Candidate changer@tuesday" in outcome
        and "Difference Swap \N{MINUS SIGN}0.11 to 0.00" in outcome
    )
    assert "p-value" not in outcome
    await reader.page.click("summary:has-text('Statistics')")
    assert "Difference 0.00 of the tasks with a certain score" in await reader.text(".statistics")
    assert (
        await reader.text("tr:has(a[href='#task-towers']) td[data-label='Difference']") == "\N{MINUS SIGN}0.33 to 0.00"
    )
    assert await reader.violations() == []
    rows = await reader.page.locator("#task-towers tbody tr").all_inner_texts()
    row_by_leaf = {row.split()[0]: " ".join(row.split()) for row in rows}
    assert "failed passed" in row_by_leaf["said"] and "answer the claim in the answer changed" in row_by_leaf["said"]
    assert "passed failed" in row_by_leaf["page"] and f"page {URL}: its text changed" in row_by_leaf["page"]
    assert "passed not judged" in row_by_leaf["third"]
    await reader.go("/compare?a=changer%40monday&b=changer%40tuesday")
    async with reader.page.expect_download() as download:
        await reader.page.click(".as-data a[download]")
    rows = list(csv.DictReader((await (await download.value).path()).read_text("utf-8-sig").splitlines()))
    assert {(row["task_id"], row["leaf"]) for row in rows} >= {(task, "page") for task in TASKS}
    async with reader.page.expect_download() as download:
        await reader.page.click('h2:has-text("Task by task") a[download]')
    rows = list(csv.DictReader((await (await download.value).path()).read_text("utf-8-sig").splitlines()))
    assert [row["task_id"] for row in rows] == sorted(TASKS)
    assert all(int(row["leaves_flipped"]) for row in rows)
    await reader.page.click("#task-rivers tbody th a")
    await reader.page.wait_for_selector(".leaf-panel")
