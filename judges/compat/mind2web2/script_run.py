"""Execution of a task script, in any process."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judges.errors import JudgeBug, LLMError
from judges.isolation.judge_main import JobMessage, code_in
from judges.isolation.remote import ServiceCalls
from judges.source_code import judge_code, judge_import
from mind2web2.breakdown import with_defaults
from mind2web2.hosted_objects import HostedCache, HostedClient, RemoteTaskPages
from mind2web2.llm_client.judge import JudgeError as PublicJudgeError
from mind2web2.llm_client.judge import answer_scope
from mind2web2.semaphores import DualSemaphore
from mind2web2.tool_faults import ToolNotConfigured
from mind2web2.utils.load_eval_script import EvaluateAnswer, script_in

_UNBOUNDED = 1_000_000


async def run_job(calls: ServiceCalls, job: JobMessage, logger: logging.Logger) -> dict[str, Any]:
    """Run the script of a job, whose objects call the service, and return its result as JSON values.

    Raises:
        JudgeBug: the script cannot be loaded, raised (except after a fault), returned no dict, or had no tree at the
            deadline.
        JudgeError: the script did not catch an error of the model.
    """
    task_id, deadline_s = str(job["task"]), job["deadline_s"]
    code = code_in(job)
    with judge_import(f"loading the task script of {task_id!r} failed"):
        script = script_in(code, Path(job["path"]))
    client = HostedClient(calls, answer=str(job["answer"]["text"]), model=str(job["model"]))
    limit = asyncio.timeout(deadline_s)
    try:
        async with limit:
            returned = await _run(script, job, client, RemoteTaskPages(calls), logger)
    except TimeoutError as error:
        if not limit.expired():
            raise
        explanation = f"the task script of {task_id!r} did not return within {deadline_s:g} s"
        returned = _partial_summary(client, explanation, error)
    except JudgeBug as error:
        is_after_fault = any(evaluator.extraction_failed for evaluator in client.evaluators)
        if not is_after_fault or isinstance(error.__cause__, ToolNotConfigured):
            raise
        # Caused by the fault, or by empty values after it, so it is not the script's fault.
        returned = _partial_summary(client, str(error), error)
    finally:
        client.release()
    return with_defaults(checked_result(returned, task_id), client.scope.decisions)


async def _run(
    script: EvaluateAnswer, job: JobMessage, client: HostedClient, pages: RemoteTaskPages, logger: logging.Logger
) -> Any:
    with tempfile.TemporaryDirectory(prefix="mind2web2-") as folder:
        cache = HostedCache(Path(folder), pages)
        with (
            _errors_of_the_service(),
            answer_scope(client.scope),
            judge_code(f"the task script of {job['task']!r} raised"),
        ):
            return await script(
                client=client,
                answer=str(job["answer"]["text"]),
                agent_name=str(job["agent"]),
                answer_name=str(job["answer"]["name"]),
                cache=cache,
                # Model and page cache apply their own limits. This semaphore is for the script's own use.
                semaphore=DualSemaphore(asyncio.Semaphore(_UNBOUNDED), asyncio.Semaphore(_UNBOUNDED)),
                logger=logger,
                model=str(job["model"]),
            )


@contextmanager
def _errors_of_the_service() -> Iterator[None]:
    """Replace a public ``JudgeError`` that the script did not catch by the error of the model that caused it."""
    cause: LLMError | None = None
    try:
        yield
    except PublicJudgeError as error:
        if not isinstance(error.__cause__, LLMError):
            raise
        cause = error.__cause__
    if cause is not None:
        raise cause


def checked_result(returned: Any, task_id: str) -> dict[str, Any]:
    """Return a script's result as JSON values. Unsupported values are converted with ``str``.

    Raises:
        JudgeBug: it is not a dict, or its ``final_score`` is not a number.
    """
    if not isinstance(returned, dict):
        raise JudgeBug(f"the task script of {task_id!r} returned {type(returned).__name__}, not a dict")
    with judge_code(f"the result of the task script of {task_id!r} cannot be written as JSON"):
        text = json.dumps(returned, default=str, skipkeys=True, ensure_ascii=False).encode("utf-8", errors="replace")
        plain: dict[str, Any] = json.loads(text, parse_constant=str, object_pairs_hook=_sharing_strings())
    score = plain.get("final_score", 0.0)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise JudgeBug(f"the task script of {task_id!r} returned an invalid final_score: {score!r}")
    return plain


def _sharing_strings() -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a hook for the JSON parser, so that equal strings like "passed", a third of a result, are one object."""
    known: dict[str, str] = {}

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: known.setdefault(value, value) if isinstance(value, str) else value for key, value in pairs}

    return as_object


def _partial_summary(client: HostedClient, explanation: str, error: Exception) -> dict[str, Any]:
    """Return the summary of the script's last evaluator, with open leaves not judged."""
    if not client.evaluators:
        raise JudgeBug(explanation) from error
    evaluator = client.evaluators[-1]
    evaluator.interrupt(explanation)
    return evaluator.get_summary()
