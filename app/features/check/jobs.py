"""Citation checks as jobs: the options of a check in its job, and the runner of the workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from answers.submission import Answer, Submission
from app.features.check.pipeline import CheckOptions, check_report
from app.features.check.report import CheckDocument, CheckStatus
from app.features.check.reports import ReportInput, plan_check, published_report
from app.jobs.evaluator import JobRun, JobRunner
from judges.result import score_json
from rubrics.scoring import bounded_score

AGENT: Final = "check"
"""Agent and task of the jobs, for lists and for the sums of usage."""
_JUDGING_SHARE: Final = 0.95
"""Share of the job's time limit after which the remaining claims are not judged."""


def as_submission(options: Mapping[str, Any], *, model: str | None) -> Submission:
    """Return a check as a submission: its answer has the name of the report, and the options as text.

    The options are name, text or url, and budget_usd.
    """
    answer = Answer(name=options["name"], text=json.dumps(options, ensure_ascii=False))
    return Submission(agent=AGENT, task_id=AGENT, answers=(answer,), model=model)


async def run_check(run: JobRun) -> dict[str, Any]:
    """Run a check and return its result, which contains the document.

    Raises:
        ReportRejected: The report cannot be checked.
        ModelNotConfigured, LLMRejected, BrowserUnavailable: The model or the browser cannot be used.
    """
    options = json.loads(run.options_json)
    if options.get("url"):
        report = await published_report(run.runtime, options["url"], owner=run.job.owner)
    else:
        report = ReportInput(name=options["name"], text=options["text"])
    plan = await asyncio.to_thread(plan_check, report)
    document = await check_report(
        run.runtime,
        plan,
        CheckOptions(
            model=run.job.model,
            owner=run.job.owner,
            check_id=run.job.id,
            budget_usd=options.get("budget_usd"),
            progress=run.progress,
            job_client=run.job_client,
            deadline_s=run.runtime.settings.job_deadline_s * _JUDGING_SHARE,
        ),
    )
    return await asyncio.to_thread(_result, document, run.result_id)


def _result(document: CheckDocument, result_id: str) -> dict[str, Any]:
    """Return the stored result. Its score is the citation precision, none without citations."""
    precision = document.figures.citation_precision_liu2023
    citations = precision.judged + precision.not_judged
    pages = {source.page.page_id: source.page for source in document.sources if source.page is not None}
    body = document.model_dump(mode="json")
    return {
        "id": result_id,
        "kind": "check",
        "status": "complete" if document.status is CheckStatus.COMPLETE else "incomplete",
        "score": score_json(bounded_score(precision.low, precision.high) if citations else None),
        "final_score": precision.value or 0.0,
        "model": document.model,
        "usage": body["usage"],
        "pages": [{"page_id": page.page_id, "url": page.url, "outcome": page.outcome} for page in pages.values()],
        "document": body,
    }


CHECK_RUNNER: Final = JobRunner(run=run_check)
