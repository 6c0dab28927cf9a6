"""Attack: answers whose Markdown takes the parser many seconds, at each view of a result."""

from __future__ import annotations

import asyncio
import time

import psutil
import pytest

from app.dashboard.answer_renderer import AnswerRenderer
from tests.fakes.processes import descendants

ATTACKS = {
    "brackets": "[" * 1_000_000,
    "emphasis": "**a" * 330_000,
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_slow_answer_costs_about_a_second_once(name: str) -> None:
    renderer = AnswerRenderer(wall_s=240)
    text = ATTACKS[name]
    views = await asyncio.gather(*(renderer.render(text) for _ in range(8)))
    assert all(view is views[0] for view in views)
    began = time.process_time()
    assert await renderer.render(text) is views[0]
    assert time.process_time() - began < 0.5
    assert [each for each in descendants() if "answer_renderer" in " ".join(_arguments(each))] == []


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def test_answer_over_the_limit_is_shown_as_plain_text() -> None:
    text = f"<script>alert(1)</script> & {ATTACKS['brackets']}"
    rendered = await AnswerRenderer().render(text)
    assert rendered.html.startswith('<pre class="plain">&lt;script&gt;alert(1)&lt;/script&gt; &amp; [[[')
    assert rendered.marks == frozenset()


async def test_cancelled_view_leaves_no_process() -> None:
    renderer = AnswerRenderer()
    view = asyncio.create_task(renderer.render(ATTACKS["brackets"]))
    async with asyncio.timeout(240):
        while not any("answer_renderer" in " ".join(_arguments(each)) for each in descendants()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        view.cancel()
        await asyncio.wait([view])
        while any("answer_renderer" in " ".join(_arguments(each)) for each in descendants()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
