"""Runner of the jobs of suites."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, Final

from app.jobs.evaluator import JobRun, JobRunner

_DEADLINE_S: Final = 86_400.0
"""Time limit of one suite run."""


async def _run(job: JobRun) -> dict[str, Any]:
    # Most workers never run a suite, whose libraries (pyarrow, lxml) take half a second to import.
    jobs = await asyncio.to_thread(importlib.import_module, "app.features.suites.jobs")
    result: dict[str, Any] = await jobs.run_suite(job)
    return result


SUITE_RUNNER: Final = JobRunner(run=_run, deadline_s=_DEADLINE_S)
