"""Judge benches in the dashboard: table, plot of kappa against price, downloads, all sizes and colors."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from app.features.meta_eval.stored_benches import write_bench
from tests.browser.dashboard.conftest import LAPTOP, PHONE, OpenDashboard, Served, open_reader
from tests.browser.dashboard.test_fit import problems_of
from tests.fakes.benches import BENCH_JUDGES, bench_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

HOSTILE = "<img src=x onerror=alert(1)>"
JUDGES = {**BENCH_JUDGES, HOSTILE: (4, None)}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def benched(open_dashboard: OpenDashboard) -> AsyncIterator[Served]:
    async with open_dashboard() as served:
        folder = served.service.settings.data_dir
        write_bench(bench_of(1, ["older set"], JUDGES), folder)
        write_bench(bench_of(2, ["wikipedia", f"wice {HOSTILE}"], JUDGES), folder)
        yield served


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)], ids=["wide-light", "narrow-dark"])
async def test_page_fits_and_is_accessible(
    benched: Served, chromium: Browser, size: tuple[int, int], dark: bool
) -> None:
    async with open_reader(chromium, benched.url, size=size, dark=dark) as reader:
        assert await problems_of(reader, "/benches", size) == []
        assert (reader.page_errors, reader.external_requests) == ([], [])


async def test_newest_bench_is_shown_with_plot_and_table(benched: Served, chromium: Browser) -> None:
    async with open_reader(chromium, benched.url) as reader:
        await reader.go("/benches")
        plots = reader.page.locator("svg.plot")
        assert await plots.count() == 2
        assert (await reader.text("h2")) == "wikipedia"
        words = await plots.first.get_attribute("aria-label") or ""
        assert "1: " not in words and "kappa 0.83 (" in words  # the judge without a price is not plotted
        assert "wordlist (recorded), kappa 0.00" in words and "free" in words
        assert "1 without price or kappa" in await reader.text("figcaption")
        rows = reader.page.locator("table.benches tbody tr")
        assert await rows.count() == 10
        careful = " ".join((await rows.nth(1).inner_text()).split())
        assert "2. careful (recorded) 60 0.917" in careful
        assert "$0.01" in careful and "1,050" in careful
        assert HOSTILE in await rows.nth(0).inner_text()


async def test_other_benches_are_listed_and_can_be_opened_and_downloaded(benched: Served, chromium: Browser) -> None:
    async with open_reader(chromium, benched.url) as reader:
        await reader.go("/benches")
        await reader.page.click("a:has-text('2026-11-21')")
        await reader.page.wait_for_selector("h2:has-text('older set')")
        link = await reader.page.locator("a:has-text('CSV')").first.get_attribute("href")
    table = (await benched.http.get(str(link))).text
    rows = list(csv.DictReader(io.StringIO(table.removeprefix("\ufeff"))))
    assert [row["model"] for row in rows] == sorted(JUDGES)
    assert {row["set"] for row in rows} == {"older set"}


async def test_api_lists_the_benches_newest_first(benched: Served) -> None:
    first = (await benched.http.get("/v1/benches", params={"limit": 1})).json()
    assert [one["sets"] for one in first["items"]] == [["wikipedia", f"wice {HOSTILE}"]]
    second = (await benched.http.get("/v1/benches", params={"cursor": first["next_cursor"]})).json()
    assert ([one["sets"] for one in second["items"]], second["next_cursor"]) == ([["older set"]], None)
    whole = (await benched.http.get(f"/v1/benches/{first['items'][0]['id']}")).json()
    assert len(whole["rows"]) == 10
    assert (await benched.http.get(f"/v1/benches/bench_{99:024x}")).status_code == 404
    assert (await benched.http.get("/v1/benches/..%2Fjobs")).status_code in (404, 422)
