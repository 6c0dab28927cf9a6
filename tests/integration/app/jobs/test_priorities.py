from __future__ import annotations

import asyncio

import pytest

from answers.submission import Answer, Submission
from app.jobs.intake import JobOptions
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres


async def submit(rig: Rig, priority: int, *names: str) -> list[str]:
    answers = tuple(Answer(name=f"{name}.md", text=name) for name in names)
    accepted = await rig.intake.accept(
        [Submission(agent="demo", task_id="task", answers=answers)],
        owner="local",
        respond=lambda receipts: receipts[0].as_json(),
        options=JobOptions(priority=priority),
    )
    return [job["id"] for job in accepted["jobs"]]


async def test_jobs_start_by_priority_then_in_order(rig: Rig):
    bulk = await submit(rig, -10, "bulk_1", "bulk_2")
    plain = await submit(rig, 0, "plain_1", "plain_2")
    urgent = await submit(rig, 5, "urgent")
    evaluation = ScriptedEvaluation()
    async with rig.running_worker(evaluation, concurrency=1):
        for job_id in bulk:
            await rig.wait_for_job(job_id)
    assert evaluation.started == [*urgent, *plain, *bulk]


async def test_requeued_job_keeps_its_priority(rig: Rig):
    [urgent] = await submit(rig, 5, "urgent")
    evaluation = ScriptedEvaluation(gate=asyncio.Event())
    async with rig.running_worker(evaluation, drain_s=0.0):
        await evaluation.running.wait()
        await submit(rig, 0, "plain")
    assert (await rig.job(urgent)).priority == 5
    again = ScriptedEvaluation()
    async with rig.running_worker(again, concurrency=1):
        await rig.wait_for_job(urgent)
    assert again.started[0] == urgent
