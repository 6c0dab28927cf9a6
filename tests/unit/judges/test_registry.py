from __future__ import annotations

import pytest

from judges.context import JudgeContext
from judges.errors import JudgeNotLoadable
from judges.registry import MARK, JudgeKind, judge
from rubrics.node import Strategy


async def written(ctx: JudgeContext) -> None:
    """A judge."""


def test_decorated_coroutine_is_returned_unchanged_with_its_judge():
    marked = judge(task="t1", description="What?", version="2", strategy=Strategy.SEQUENTIAL)(written)
    found = getattr(marked, MARK)
    assert marked is written
    assert (found.task, found.description, found.version) == ("t1", "What?", "2")
    assert (found.strategy, found.kind, found.coroutine) == (Strategy.SEQUENTIAL, JudgeKind.NATIVE, written)
    assert found.name == "written"


@pytest.mark.parametrize("task", ["", "a b", "../x", "-x", "x" * 101])
def test_invalid_task_id_is_rejected(task: str):
    with pytest.raises(JudgeNotLoadable, match="task id"):
        judge(task=task, description="d")


def test_judge_that_is_not_async_is_rejected():
    with pytest.raises(JudgeNotLoadable, match="async def"):
        judge(task="t", description="d")(lambda ctx: None)  # type: ignore[type-var]
