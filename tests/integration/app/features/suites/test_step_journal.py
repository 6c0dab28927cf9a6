"""The step journal in the database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.features.suites.jobs import StepJournal
from app.features.suites.storage import get_step, list_steps, means_of
from app.jobs.errors import JobSuperseded
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.records import Fence
from tests.fakes.services import Rig


def record(position: int, *, success: int | None = 1, **more: Any) -> dict[str, Any]:
    known = success is not None
    return {
        "id": f"t:{position}",
        "position": position,
        "task_id": "t",
        "status": "scored" if known else "not_judged",
        "reason": None if known else "llm_unavailable",
        "element_acc": success,
        "action_f1": None if success is None else 0.5,
        "step_acc": success,
        "trace": {"raw_output": f"said {position}"},
    } | more


@pytest.fixture
async def fence(rig: Rig) -> Fence:
    """Return the fence of a running job."""
    [job_id] = await rig.submit("a run")
    queued = await rig.job(job_id)
    assert queued.queue_id is not None
    async with rig.database.begin() as connection:
        claimed = await rows.claim(connection, job_id, queued.queue_id, now=queued.created_at)
    assert claimed is not None
    return claimed.fence


async def test_steps_are_kept_across_attempts(database: Database, fence: Fence):
    journal = StepJournal(database, fence)
    await journal.begin_run({"data": "one"}, 3)
    await journal.store(record(0))
    await journal.store(record(1, success=None))
    again = StepJournal(database, fence)
    await again.begin_run({"data": "one"}, 3)
    known = await again.stored_records()
    assert {id: one["status"] for id, one in known.items()} == {"t:0": "scored", "t:1": "not_judged"}
    assert "trace" not in known["t:0"]
    async with database.begin() as connection:
        whole = await get_step(connection, fence.job_id, 0)
    assert whole == record(0)


async def test_steps_of_other_data_are_removed(database: Database, fence: Fence):
    journal = StepJournal(database, fence)
    await journal.begin_run({"data": "one"}, 3)
    await journal.store(record(0))
    await journal.begin_run({"data": "two"}, 3)
    assert await journal.stored_records() == {}


async def test_latest_record_of_a_step_counts(database: Database, fence: Fence):
    journal = StepJournal(database, fence)
    await journal.begin_run({}, 2)
    await journal.store(record(0, success=None))
    await journal.store(record(0))
    await journal.store(record(1, success=0))
    async with database.begin() as connection:
        means = await means_of(connection, fence.job_id)
        failed = await list_steps(connection, fence.job_id, limit=10, success=False)
    assert (means.total, means.by_status, means.step_acc) == (2, {"scored": 2}, 0.5)
    assert [one["position"] for one in failed] == [1]


async def test_superseded_attempt_cannot_write(database: Database, fence: Fence):
    journal = StepJournal(database, replace(fence, attempt=fence.attempt + 1))
    with pytest.raises(JobSuperseded):
        await journal.begin_run({}, 1)
    with pytest.raises(JobSuperseded):
        await journal.store(record(0))
    assert await journal.stored_records() == {}


async def test_text_invalid_for_postgres_is_stored_partially(database: Database, fence: Fence):
    journal = StepJournal(database, fence)
    await journal.begin_run({}, 1)
    await journal.store(record(0, task_id="t\0x", trace={"raw_output": "a\0b \ud800"}))
    async with database.begin() as connection:
        whole = await get_step(connection, fence.job_id, 0)
    assert whole is not None
    assert whole["trace"]["raw_output"].startswith("a")
