"""Suite runs as jobs: a worker judges them step by step with the fencing token of the job and stores a result."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from answers.submission import Answer, Submission
from app.async_tools import Batches
from app.features.suites.data_folders import DataFolders, PathNotAllowed
from app.features.suites.mind2web import Mind2WebRun
from app.features.suites.mm_mind2web import MultimodalRun
from app.features.suites.page_figures import figure
from app.features.suites.records import Record
from app.features.suites.run_options import SuiteRunIn
from app.features.suites.storage import begin_run, parse_records, record_texts, step_row, store_steps
from app.features.suites.suite_run import SuiteModel, SuiteRun, run_steps
from app.jobs.errors import JobSuperseded
from app.jobs.evaluator import JobRun
from app.progress import Progress, Stage
from app.storage.database import Database
from app.storage.jobs import is_fence_valid
from app.storage.records import Fence
from judges.result import score_json
from judges.suites.errors import SuiteError
from rubrics.scoring import bounded_score

OPTIONS_NAME = "run.json"
_log = logging.getLogger(__name__)


SUITES: Final[Mapping[str, Any]] = {run_class.name.value: run_class for run_class in (Mind2WebRun, MultimodalRun)}
"""The class of runs (``SuiteRun``) of each suite, by name."""


def as_submission(suite: str, options: SuiteRunIn) -> Submission:
    """Return a run as a submission: the suite is agent and task, and the options are the answer text."""
    answer = Answer(name=OPTIONS_NAME, text=options.model_dump_json(exclude_none=True))
    return Submission(agent=suite, task_id=suite, answers=(answer,), model=options.model, run=options.run)


async def run_suite(run: JobRun) -> dict[str, Any]:
    """Execute a run and return its result. Final records of an earlier attempt are reused.

    Raises:
        SuiteError: the data cannot be used.
        ModelNotConfigured, LLMRejected: the model cannot be used.
        JobSuperseded: another attempt of the job has taken over.
        DatabaseUnavailable: the database cannot be reached.
    """
    settings = run.runtime.settings
    folders = DataFolders.of(settings)
    try:
        run_class = SUITES[run.job.task_id]
        options = run_class.options_class.model_validate_json(run.options_json)
        opened = await asyncio.to_thread(run_class, options, folders.resolve_allowed, settings)
        return await _judge_steps(run, opened)
    except (SuiteError, PathNotAllowed) as error:
        raise SuiteError(folders.hide_folders(str(error))) from error


async def _judge_steps(run: JobRun, opened: SuiteRun[Any]) -> dict[str, Any]:
    job, total = run.job, opened.total
    suite_model = SuiteModel.without_model() if opened.model is None else _suite_model(run, opened.model)
    journal = StepJournal(run.database, job.fence)
    await journal.begin_run(await asyncio.to_thread(opened.identity), total)
    run.progress(_progress(0, total))
    records = await run_steps(
        opened,
        journal,
        suite_model,
        max_concurrent=run.runtime.settings.max_llm,
        on_step=lambda _record, *, done, total, reused: run.progress(_progress(done, total)),
    )
    run.progress(Progress(stage=Stage.STORING, leaves_done=len(records), leaves_total=total))
    figures = await asyncio.to_thread(opened.figures, records)
    _log.info("suite run judged", extra={"suite": job.task_id, "steps": len(records), "status": figures["status"]})
    # Lists of runs show the step success over all steps.
    low, high = (figure(figures["bounds"][end], "micro", "step") or 0.0 for end in ("low", "high"))
    score = bounded_score(low, high)
    scores = {"score": score_json(score), "final_score": score.low}
    return {"id": run.result_id, "kind": "suite", **figures, **scores, "pages": []}


def _suite_model(run: JobRun, model: str) -> SuiteModel:
    models = run.runtime.models
    client, name = models.client(model)
    models.check(model)
    return SuiteModel(client=run.job_client(client), model=name)


def _progress(done: int, total: int) -> Progress:
    """Return the progress. Steps are reported in the fields for leaves."""
    return Progress(stage=Stage.JUDGING, leaves_done=done, leaves_total=total)


class StepJournal:
    """``Journal`` of one attempt. A record is stored when its transaction is committed."""

    def __init__(self, database: Database, fence: Fence) -> None:
        self._database = database
        self._fence = fence
        self._writes: Batches[Record, None] = Batches(self._write)

    async def begin_run(self, identity: Mapping[str, Any], total: int) -> None:
        """Register the run. Steps of an attempt with another identity are deleted.

        Raises:
            JobSuperseded: another attempt of the job has taken over.
            DatabaseUnavailable: the database cannot be reached.
        """
        async with self._database.begin() as connection:
            if not await is_fence_valid(connection, self._fence):
                raise JobSuperseded(self._fence.job_id)
            identity_json = json.dumps(identity, sort_keys=True)
            await begin_run(connection, self._fence.job_id, identity=identity_json, total=total)

    async def stored_records(self) -> Mapping[str, dict[str, Any]]:
        async with self._database.begin() as connection:
            texts = await record_texts(connection, self._fence.job_id)
        return {record["id"]: record for record in await asyncio.to_thread(parse_records, texts)}

    async def store(self, record: Record) -> None:
        """Store a record. Raises JobSuperseded, DatabaseUnavailable."""
        await self._writes.run(record)

    async def _write(self, records: Sequence[Record]) -> list[None]:
        rows = await asyncio.to_thread(lambda: list(map(step_row, records)))
        async with self._database.begin() as connection:
            if not await is_fence_valid(connection, self._fence):
                raise JobSuperseded(self._fence.job_id)
            await store_steps(connection, self._fence.job_id, rows)
        return [None] * len(records)
