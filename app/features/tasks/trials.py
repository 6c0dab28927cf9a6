"""Tests of an unsaved task file on one stored answer. A test is a job; its result is not a result of the agent."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from answers.submission import Answer, Submission
from app.agent_summary import score_of
from app.engine import pipeline
from app.jobs.errors import JobNotFound
from app.jobs.evaluator import JobRun, JobRunner
from app.storage.jobs import answer_text, get_job
from app.storage.records import Job
from app.storage.results import get_result
from judges.analysis.flips import comparable_result, flips
from judges.registry import MARK, Judge
from judges.result import score_json
from judges.yaml_tasks.compiler import yaml_judge

KIND: Final = "test"


def as_submission(job: Job, *, path: Path, text: str, model: str | None) -> Submission:
    """Return the test of a task file on the answer of ``job`` as a submission, with the options as text."""
    options = {"job_id": job.id, "path": str(path), "text": text}
    answer = Answer(name=job.answer_name, text=json.dumps(options, ensure_ascii=False))
    return Submission(agent=job.agent, task_id=job.task_id, answers=(answer,), model=model or job.model)


async def run_test(run: JobRun) -> dict[str, Any]:
    """Judge a stored answer with the text of a task file and with stored pages.

    Raises the errors of the pipeline and:
        JobNotFound: The answer was deleted.
    """
    options = json.loads(run.options_json)
    async with run.database.begin() as connection:
        source = await get_job(connection, options["job_id"])
        if source is None:
            raise JobNotFound(options["job_id"])
        text = await answer_text(connection, source.answer_sha256)
        earlier = None if source.result_id is None else await get_result(connection, source.result_id)
    result = await pipeline.evaluate(
        run.runtime,
        judge=await asyncio.to_thread(_judge, options["text"], options["path"]),
        agent=source.agent,
        answer=Answer(name=source.answer_name, text=text),
        model=run.job.model,
        owner=source.owner,
        result_id=run.result_id,
        progress=run.progress,
        replace_client=run.job_client,
        answered_at=source.created_at,
        earlier=None if earlier is None else await asyncio.to_thread(json.loads, earlier.body),
        stored_pages=True,
    )
    return {**result, "kind": KIND, "tested_job": source.id, "tested_result": source.result_id}


def _judge(text: str, path: str) -> Judge:
    source = text.encode("utf-8")
    loaded: Judge = getattr(yaml_judge(source, path), MARK)
    return replace(loaded, path=Path(path), sha256=hashlib.sha256(source).hexdigest(), source=source)


def comparison(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of both results, the leaves whose outcome differs, and how many were reused. CPU-bound."""
    found = [] if before is None else flips([comparable_result(before)], [comparable_result(after)])
    rejudged = after.get("rejudged") or {}
    return {
        "before": None if before is None else _side(before),
        "after": _side(after),
        "flips": [asdict(flip) for flip in found],
        "reused": rejudged.get("reused"),
        "asked": rejudged.get("again"),
    }


def _side(result: Mapping[str, Any]) -> dict[str, Any]:
    return {"result_id": result["id"], "status": result["status"], "score": score_json(score_of(result))}


TEST_RUNNER: Final = JobRunner(run=run_test)
