from __future__ import annotations

import pytest

from judges.errors import JudgeNotLoadable
from judges.registry import judge


@pytest.mark.parametrize("task", ["", "../x"])
def test_invalid_task_id_is_rejected(task: str):
    with pytest.raises(JudgeNotLoadable, match="task id"):
        judge(task=task, description="d")


def test_judge_that_is_not_async_is_rejected():
    with pytest.raises(JudgeNotLoadable, match="async def"):
        judge(task="t", description="d")(lambda ctx: None)  # type: ignore[type-var]
