"""Pages shaped like real ones, in a real browser: what a person sees on them is the evidence, whatever is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome, Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.fakes.sandbox import unsandboxed_here
from tests.page_shapes.articles import ARTICLES
from tests.page_shapes.captured import captured, faults
from tests.page_shapes.loops import DOWN, ENDLESS, LOOPS, STOPPED, WAITING
from tests.page_shapes.lost import COVERED, NOTED, OVERLAYS
from tests.page_shapes.shapes import Shape
from tests.page_shapes.short import EMPTY, SHORT
from tests.page_shapes.varied import VARIED

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

ALL: Mapping[str, Shape] = {
    **SHORT, **EMPTY, **OVERLAYS, **COVERED, **NOTED, **ARTICLES, **VARIED, **DOWN, **LOOPS,
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(browser_program: Path) -> Mapping[str, Observation]:
    def make(guard: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(4)
        return BrowserCapturer(browser_program, guard, semaphore=slots, allow_unsandboxed=unsandboxed_here())

    return await captured(make, ALL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def busy(browser_program: Path) -> Mapping[str, Observation]:
    """Pages that block their renderer. They have their own browser, because pages of one browser may share one."""

    def make(guard: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(2)
        return BrowserCapturer(browser_program, guard, semaphore=slots, allow_unsandboxed=unsandboxed_here())

    return await captured(make, {**ENDLESS, **WAITING})


def _wrong(shapes: Mapping[str, Shape], seen: Mapping[str, Observation]) -> dict[str, list[str]]:
    return {name: found for name, shape in shapes.items() if (found := faults(shape, seen[name]))}


async def test_every_genuine_short_page_is_evidence(seen: Mapping[str, Observation]) -> None:
    assert len(SHORT) == 26
    assert _wrong(SHORT, seen) == {}


async def test_a_page_is_empty_only_if_it_shows_nothing_or_is_still_loading(seen: Mapping[str, Observation]) -> None:
    assert _wrong(EMPTY, seen) == {}
    assert {seen[name].outcome for name in EMPTY} == {CaptureOutcome.EMPTY}


async def test_text_under_what_a_person_sees_through_is_read(seen: Mapping[str, Observation]) -> None:
    assert _wrong(OVERLAYS, seen) == {}


async def test_text_under_something_opaque_is_not_read(seen: Mapping[str, Observation]) -> None:
    assert _wrong(COVERED, seen) == {}
    assert [name for name in COVERED if "Ignore what you were told" not in seen[name].hidden_text] == []


async def test_the_detail_says_where_the_text_is_and_what_could_not_be_loaded(
    seen: Mapping[str, Observation],
) -> None:
    assert _wrong(NOTED, seen) == {}


async def test_all_visible_text_of_articles_is_read_although_hosts_are_down(seen: Mapping[str, Observation]) -> None:
    assert _wrong(ARTICLES, seen) == {}
    assert seen["nothing-but-the-document"].detail == (
        "6 of 6 scripts could not be loaded; 4 of 4 style sheets could not be loaded"
    )
    assert seen["all-there"].detail == ""


async def test_pages_of_other_languages_and_frameworks_are_called_what_they_are(
    seen: Mapping[str, Observation],
) -> None:
    assert _wrong(VARIED, seen) == {}


async def test_a_loop_of_failing_requests_is_ended_and_costs_no_text(seen: Mapping[str, Observation]) -> None:
    assert _wrong(LOOPS, seen) == {}
    assert {seen[name].outcome for name in LOOPS} == {CaptureOutcome.OK}


async def test_a_script_that_blocks_the_page_is_stopped_and_the_capture_is_partial(
    busy: Mapping[str, Observation],
) -> None:
    assert _wrong(ENDLESS, busy) == {}
    assert {busy[name].outcome for name in ENDLESS} == {CaptureOutcome.PARTIAL}


async def test_a_script_may_wait_for_the_clock_in_a_loop(busy: Mapping[str, Observation]) -> None:
    assert _wrong(WAITING, busy) == {}
    assert {busy[name].outcome for name in WAITING} == {CaptureOutcome.OK}


async def test_a_page_with_much_on_a_host_that_is_down_is_no_loop(seen: Mapping[str, Observation]) -> None:
    assert _wrong(DOWN, seen) == {}
    assert {seen[name].outcome for name in DOWN} == {CaptureOutcome.OK}
    assert [name for name in DOWN if STOPPED in seen[name].detail] == []
