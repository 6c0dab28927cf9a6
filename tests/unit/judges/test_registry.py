from __future__ import annotations

import pytest

from judges.context import JudgeContext
from judges.errors import JudgeNotLoadable
from judges.registry import JudgeKind, judge, judge_of
from rubrics.node import Strategy


async def written(ctx: JudgeContext) -> None:
    """A judge."""


def test_a_marked_coroutine_stays_itself_and_carries_its_judge():
    marked = judge(task="t1", description="What?", version="2", strategy=Strategy.SEQUENTIAL)(written)
    found = judge_of(marked)
    assert marked is written
    assert (found.task, found.description, found.version) == ("t1", "What?", "2")
    assert (found.strategy, found.kind, found.coroutine) == (Strategy.SEQUENTIAL, JudgeKind.NATIVE, written)
    assert found.name == "written"


@pytest.mark.parametrize("task", ["", "a b", "../x", "-x", "x" * 101])
def test_a_task_id_that_is_no_name_is_refused(task: str):
    with pytest.raises(JudgeNotLoadable, match="task id"):
        judge(task=task, description="d")


def test_a_judge_that_is_not_async_is_refused():
    with pytest.raises(JudgeNotLoadable, match="async def"):
        judge(task="t", description="d")(lambda ctx: None)  # type: ignore[type-var]


def test_a_function_without_the_mark_has_no_judge():
    with pytest.raises(JudgeNotLoadable, match="@judge"):
        judge_of(print)
