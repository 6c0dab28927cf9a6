"""Evaluation of answers in the public folder layout: reuses up-to-date results, and judges the other answers.

``judge_in_folder`` is also used by ``assay evaluate``, which judges with the service's pipeline.

An answer has no result if the script raises, or if the judge or the harness failed permanently, even if the script
ignored that. A failure file is then written, so that the answer is counted in the summary.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from cache.errors import CacheError
from judges import errors
from judges.gc_tuning import raised_gc_thresholds
from judges.registry import Judge, JudgeKind
from judges.result import AnswerFolder, RunFacts, build_result, supersede_results, write_json
from judges.source_code import judge_code, judge_import
from mind2web2.breakdown import with_defaults
from mind2web2.environment import model_name
from mind2web2.evaluator_base import preparer_of_this_loop
from mind2web2.llm_client.judge import HarnessError, JudgeConfig, answer_scope
from mind2web2.metrics import is_without_result
from mind2web2.results import load_latest_result, run_description
from mind2web2.script_run import checked_result
from mind2web2.semaphores import DualSemaphore
from mind2web2.submission import AnswerFile
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import EvaluateAnswer, load_eval_script
from mind2web2.utils.logging_setup import log_files
from rubrics.verdict import Usage


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer has no result. ``code`` is an error code of the caller."""

    message: str
    traceback: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """Result of one answer and its file, or why there is none. ``reused``: it was judged in an earlier run."""

    folder: AnswerFolder
    result: dict[str, Any] | None = None
    path: Path | None = None
    failure: Failure = Failure("")
    reused: bool = False


async def judge_in_folder(
    folder: AnswerFolder,
    judge: Callable[[logging.Logger, dict[str, Any] | None], Awaitable[dict[str, Any]]],
    failure_of: Callable[[Exception], Failure | None],
    *,
    debug: bool = False,
) -> JudgedAnswer:
    """Judge an answer and store its result, or why it has none, with a log. Earlier results are superseded.

    Args:
        judge: Returns the result. Gets the logger of the answer and its newest result so far, if that can be read.
        failure_of: Returns why there is no result. None: the error concerns other answers, too, and is raised.
        debug: Store the result as that of a self-debug run, which does not supersede other results.
    """
    earlier = None if debug else await asyncio.to_thread(_supersede, folder)
    path = folder.free_result_path(datetime.now().astimezone(), debug=debug)
    with log_files(folder.logs, folder.answer_name.removesuffix(".md"), stamp=path.name[:15]) as logger:
        try:
            result = await judge(logger, earlier)
            await asyncio.to_thread(write_json, path, result)
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            logger.error("%s has no result: %s\n%s", folder.answer_name, failure.message, failure.traceback)
            await asyncio.to_thread(folder.write_failure, failure.message, failure.traceback)
            return JudgedAnswer(folder=folder, failure=failure)
    folder.clear_failure()
    return JudgedAnswer(folder=folder, result=result, path=path)


def _supersede(folder: AnswerFolder) -> dict[str, Any] | None:
    """Supersede the results of an answer, so that it has none if judging fails. Return the newest one."""
    earlier = load_latest_result(folder.path)
    supersede_results(folder.results)
    return earlier


@dataclass(frozen=True, kw_only=True)
class TaskEvaluation:
    """Evaluation of the answers of an agent to one task with a script of the public toolkit.

    Attributes:
        cache_root, out: Folders of all page caches and of all results.
        semaphore: Limits page captures and model requests.
        max_answers: Maximum number of concurrent answers.
        model: Bare model name passed to the script; None for that of the client's judge, else the configured one.
        overwrite: Judge answers again whose result is up to date.
        debug: Mark the results as those of a self-debug run.
    """

    agent: str
    task_id: str
    client: Any
    script_path: Path
    cache_root: Path
    out: Path
    semaphore: DualSemaphore
    max_answers: int
    model: str | None = None
    overwrite: bool = False
    debug: bool = False

    @cached_property
    def script(self) -> EvaluateAnswer:
        """The function of the script, loaded when an answer needs it. Raises as ``load_eval_script``."""
        return load_eval_script(self.script_path)

    @cached_property
    def cache(self) -> CacheFileSys:
        """The page cache, opened when an answer needs it. Raises CacheIndexError."""
        return CacheFileSys(self.cache_root / self.agent / self.task_id)

    @cached_property
    def _judge(self) -> Judge:
        sha256 = hashlib.sha256(self.script_path.expanduser().read_bytes()).hexdigest()
        return Judge(task=self.task_id, kind=JudgeKind.MIND2WEB2, sha256=sha256)

    @property
    def _model(self) -> str:
        judge = getattr(self.client, "judge", None)
        return self.model or (judge.model if isinstance(judge, JudgeConfig) else model_name())

    async def judge_all(
        self,
        answers: Sequence[AnswerFile],
        logger: logging.Logger,
        finished: Callable[[JudgedAnswer], object] = lambda judged: None,
    ) -> list[JudgedAnswer]:
        """Judge answers, and return them in the order of completion. ``finished`` is called with each."""
        slots = asyncio.Semaphore(self.max_answers)
        judged: list[JudgedAnswer] = []

        async def judge_one(answer: AnswerFile) -> None:
            async with slots:
                outcome = await self._evaluate(answer)
            if outcome.result is None:
                failure = outcome.failure
                logger.error("%s has no result: %s\n%s", answer.name, failure.message, failure.traceback)
            elif outcome.reused:
                logger.info("%s: the last result is up to date", answer.name)
            judged.append(outcome)
            finished(outcome)

        with raised_gc_thresholds(), preparer_of_this_loop().judging():
            async with asyncio.TaskGroup() as group:
                for answer in answers:
                    group.create_task(judge_one(answer))
        return judged

    async def _evaluate(self, answer: AnswerFile) -> JudgedAnswer:
        """Reuse the answer's result, or judge the answer."""
        folder = AnswerFolder(out=self.out, agent=self.agent, task_id=self.task_id, answer_name=answer.name)
        try:
            data = await asyncio.to_thread(answer.read_bytes)
            metadata = await asyncio.to_thread(_bytes_or_none, answer.meta_path)
        except OSError as error:
            supersede_results(folder.results)
            folder.write_failure(str(error))
            return JudgedAnswer(folder=folder, failure=Failure(str(error)))
        folder.copy_inputs(data, metadata)
        if not (self.overwrite or self.debug):
            current = self._current_result(folder, data)
            if current is not None:
                return JudgedAnswer(folder=folder, result=current, reused=True)
        return await judge_in_folder(
            folder, lambda logger, _: self._run(folder, data, logger), _failure, debug=self.debug
        )

    async def _run(self, folder: AnswerFolder, data: bytes, logger: logging.Logger) -> dict[str, Any]:
        """Run the script and return the result.

        Raises:
            judges.errors.JudgeError: there can be no result.
        """
        began = time.monotonic()
        with answer_scope() as scope:
            try:
                returned = await self._returned(folder, data, logger)
                scope.check()
            except errors.JudgeError as error:
                if scope.failure in (None, error):
                    raise
                raise scope.failure from error
            judged_with = run_description(self.client)
        if judged_with["judge"] is not None:
            judged_with |= dict.fromkeys(("judge_model", "extract_model"), judged_with["judge"]["model"])
        seconds = round(time.monotonic() - began, 3)
        summary = with_defaults(checked_result(returned, folder.task_id), scope.decisions)
        summary.setdefault("answer_name", folder.answer_name)
        usage = summary.get("usage")
        facts = RunFacts(
            id=None,
            judge=self._judge,
            judged_with=judged_with,
            model=self._model,
            prompts=summary.get("prompts", ()),
            answer_sha256=hashlib.sha256(data).hexdigest(),
            usage=Usage(**usage) if isinstance(usage, dict) else Usage(),
            timing={"judge_s": seconds, "total_s": seconds},
            pages=summary.get("pages", ()),
        )
        return build_result(summary, facts)

    async def _returned(self, folder: AnswerFolder, data: bytes, logger: logging.Logger) -> Any:
        """Run the script and return what it returned."""
        with judge_import(f"loading the task script of {folder.task_id} failed"):
            script = self.script
        try:
            cache = self.cache
        except CacheError as error:
            raise HarnessError(str(error)) from error
        with judge_code(f"judging {folder.task_id}/{folder.answer_name}"):
            return await script(
                client=self.client,
                answer=data.decode("utf-8"),
                agent_name=folder.agent,
                answer_name=folder.answer_name,
                cache=cache,
                semaphore=self.semaphore,
                logger=logger,
                model=self._model,
            )

    def _current_result(self, folder: AnswerFolder, data: bytes) -> dict[str, Any] | None:
        """Return the newest result if nothing that it depends on has changed.

        As in the public toolkit, pages and the address of the model are not compared. A result that an outage made
        incomplete is not current.
        """
        result = load_latest_result(folder.path)
        if result is None or is_without_result(result):
            return None
        inputs = run_description(self.client)
        del inputs["judge_usage"]
        inputs |= {"answer_sha256": hashlib.sha256(data).hexdigest(), "eval_script_sha256": self._judge.sha256}
        if inputs["judge"] is None:  # a client without a judge sends the model that the script was given
            inputs["model"] = self._model
        is_current = all(name in result and result[name] == value for name, value in inputs.items())
        return result if is_current else None


def _failure(error: Exception) -> Failure | None:
    if not isinstance(error, errors.JudgeError):
        return None
    return Failure(str(error), error.traceback if isinstance(error, errors.JudgeBug) else "")


def _bytes_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
