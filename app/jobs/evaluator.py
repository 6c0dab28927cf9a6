"""Execution of one job attempt: with the model, the checkpoints and the budget of the job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from answers.submission import Answer
from app.engine import pipeline
from app.engine.runtime import Runtime
from app.jobs.budget_ledger import AttemptAccounting, BudgetLedger
from app.jobs.errors import JobBudgetExhausted
from app.observability.metrics import RequestMetrics
from app.progress import ProgressCallback
from app.storage.database import Database
from app.storage.records import Job, JobKind, SuppliedEvidence
from app.storage.results import earlier_result
from judges.errors import JudgeBug, LLMBudgetExceeded
from judges.llm.client import LLMClient, for_job
from judges.llm.observed import ObservedLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """Attempt to run a job that does not judge an answer. It asks models with ``job_client(client)``."""

    runtime: Runtime
    database: Database
    job: Job
    options_json: str
    result_id: str
    progress: ProgressCallback
    job_client: Callable[[LLMClient], LLMClient]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunner:
    """How jobs of one kind run. ``deadline_s`` is the time limit of one job; None: that of answers."""

    run: Callable[[JobRun], Awaitable[dict[str, Any]]]
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobEvaluator:
    """Runs job attempts: answers with the pipeline, jobs of other kinds with ``runners``, by kind."""

    runtime: Runtime
    database: Database
    ledger: BudgetLedger
    request_metrics: RequestMetrics
    runners: Mapping[str, JobRunner]

    async def __call__(self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict[str, Any]:
        """Run an attempt and return the result as JSON values.

        Raises the errors of the pipeline and:
            JobBudgetExhausted: A model request did not fit into the budget.
        """
        account = await AttemptAccounting.open(self.database, self.ledger, job)
        prepare = for_job(account, account)

        def job_client(client: LLMClient) -> LLMClient:
            return ObservedLLM(client, (self.request_metrics,), prepare=prepare)

        try:
            if job.kind is JobKind.ANSWER:
                case = await self._case(job, answer, result_id)
                result = await pipeline.evaluate(self.runtime, case, progress=progress, wrap_client=job_client)
            else:
                result = await self.runners[job.kind.value].run(
                    JobRun(
                        runtime=self.runtime,
                        database=self.database,
                        job=job,
                        options_json=answer.text,
                        result_id=result_id,
                        progress=progress,
                        job_client=job_client,
                    )
                )
        except (JudgeBug, LLMBudgetExceeded) as error:
            if account.exhausted is not None:  # the missing replies may be the cause of the judge's error
                raise JobBudgetExhausted(account.exhausted, None) from error
            raise
        if account.exhausted is not None and result["status"] != "complete":
            raise JobBudgetExhausted(account.exhausted, result)
        return result

    async def _case(self, job: Job, answer: Answer, result_id: str) -> pipeline.JudgingCase:
        async with self.database.begin() as connection:
            earlier = await earlier_result(connection, job)
        await self.runtime.reload_judges([job.task_id])
        evidence = SuppliedEvidence.read(job.supplied)
        supplied = [await self.runtime.index.get(page_id) for page_id in evidence.pages]
        return pipeline.JudgingCase(
            judge=self.runtime.judge(job.task_id),
            agent=job.agent,
            answer=answer,
            model=job.model,
            owner=job.owner,
            result_id=result_id,
            answered_at=job.created_at,
            earlier=None if earlier is None else await asyncio.to_thread(json.loads, earlier),
            stored_pages=job.stored_pages,
            supplied=[capture for capture in supplied if capture is not None],
            evidence_policy=evidence.policy,
        )
