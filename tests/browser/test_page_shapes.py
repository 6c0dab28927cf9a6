"""Captures of realistic pages by a real browser: evidence is the visible text, even if resources are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome, Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.fakes.sandbox import is_sandbox_missing
from tests.page_shapes.articles import ARTICLES
from tests.page_shapes.captured import capture_shapes, faults
from tests.page_shapes.loops import DOWN, ENDLESS, LOOPS, STOPPED, WAITING
from tests.page_shapes.lost import COVERED, NOTED, OVERLAYS
from tests.page_shapes.shapes import Shape
from tests.page_shapes.short import EMPTY, SHORT
from tests.page_shapes.varied import VARIED

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ALL: Mapping[str, Shape] = {
    **SHORT, **EMPTY, **OVERLAYS, **COVERED, **NOTED, **ARTICLES, **VARIED, **DOWN,
}  # fmt: skip
# Each of these keeps a processor busy for seconds.
FAILING_LOOPS = {name: LOOPS[name] for name in ("sync-to-private",)}
BLOCKING = {"endless-at-once": ENDLESS["endless-at-once"]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seen(browser_program: Path) -> Mapping[str, Observation]:
    return await _captures(browser_program, ALL, at_once=4)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(browser_program: Path) -> Mapping[str, Observation]:
    """Captures of pages that keep their renderer busy, one at a time and in a separate browser, because pages of one
    browser may share a renderer.
    """
    return await _captures(browser_program, {**FAILING_LOOPS, **BLOCKING, **WAITING}, at_once=1)


async def _captures(program: Path, shapes: Mapping[str, Shape], *, at_once: int) -> Mapping[str, Observation]:
    def make(proxy: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(at_once)
        return BrowserCapturer(program, proxy, semaphore=slots, deadline_s=180, allow_unsandboxed=is_sandbox_missing())

    return await capture_shapes(make, shapes)


def _wrong(shapes: Mapping[str, Shape], seen: Mapping[str, Observation]) -> dict[str, list[str]]:
    return {name: found for name, shape in shapes.items() if (found := faults(shape, seen[name]))}


async def test_evidence_is_the_visible_text_even_if_resources_are_missing(seen: Mapping[str, Observation]) -> None:
    assert _wrong(ALL, seen) == {}
    assert {seen[name].outcome for name in EMPTY} == {CaptureOutcome.EMPTY}
    assert [name for name in COVERED if "Ignore what you were told" not in seen[name].hidden_text] == []
    assert seen["nothing-but-the-document"].detail == (
        "6 of 6 scripts could not be loaded; 4 of 4 style sheets could not be loaded"
    )
    assert seen["all-there"].detail == ""
    assert {seen[name].outcome for name in DOWN} == {CaptureOutcome.OK}
    assert [name for name in DOWN if STOPPED in seen[name].detail] == []


async def test_busy_scripts_are_stopped_without_losing_text(busy: Mapping[str, Observation]) -> None:
    assert _wrong({**FAILING_LOOPS, **BLOCKING, **WAITING}, busy) == {}
    assert {busy[name].outcome for name in (*FAILING_LOOPS, *WAITING)} == {CaptureOutcome.OK}
    assert {busy[name].outcome for name in BLOCKING} == {CaptureOutcome.PARTIAL}
