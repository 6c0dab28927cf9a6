"""Run of a task file in a child process, seen from the service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from answers.submission import Answer
from judges.isolation import judge_job
from judges.isolation.judge_job import JudgeJob, run_isolated
from judges.loader import load_judge
from tests.fakes.judge_processes import script


async def test_start_of_the_fork_server_counts_towards_the_deadline(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    now_s, sent = 100.0, list[dict[str, Any]]()

    class SlowPool:
        @asynccontextmanager
        async def spawn(self, *_: object, **__: object) -> AsyncIterator[Any]:
            nonlocal now_s
            now_s += 7.0
            yield SimpleNamespace(main_socket=None, side_socket=None)

    class Connection:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def run(self, order: dict[str, Any]) -> dict[str, Any]:
            sent.append(order)
            return {"done": 1}

        def close(self) -> None: ...

    monkeypatch.setattr(judge_job, "monotonic", lambda: now_s)
    monkeypatch.setattr(judge_job, "RpcConnection", Connection)
    pool: Any = SlowPool()
    job = JudgeJob(
        entry="m:f",
        judge=load_judge(script(tmp_path)),
        answer=Answer(name="answer_1.md", text="x"),
        agent="me",
        model="gpt-6-luna",
        handlers={},
        deadline_s=40.0,
    )
    assert await run_isolated(pool, job) == 1
    assert [order["deadline_s"] for order in sent] == [33.0]
