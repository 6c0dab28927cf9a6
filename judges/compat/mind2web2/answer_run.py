"""Evaluation of one answer in the public folder layout: reuses an up-to-date result, otherwise runs the script.

An answer has no result if the script raises, or if the judge or the harness failed permanently, even if the script
ignored that. A failure file is then written, so that the answer is counted in the summary.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cache.errors import CacheError
from judges import errors
from judges.registry import Judge
from judges.result import AnswerFolder, build_result, supersede_results, write_json
from judges.source_code import judge_code, judge_import
from mind2web2.breakdown import with_defaults
from mind2web2.llm_client.judge import AnswerScope, HarnessError, answer_scope
from mind2web2.metrics import is_without_result
from mind2web2.results import load_latest_result, run_description
from mind2web2.script_run import checked_result
from mind2web2.submission import AnswerFile
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import EvaluateAnswer
from mind2web2.utils.logging_setup import log_files
from rubrics.verdict import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """Result of one answer, or the reason why there is none. ``reused``: it was judged in an earlier run."""

    answer: AnswerFile
    result: dict[str, Any] | None = None
    error: str = ""
    reused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvaluation:
    """Settings for all answers of a task. ``judge`` identifies the script and its file.

    ``script`` and ``cache`` load the script and the page cache, once, when an answer needs them.
    """

    script: Callable[[], EvaluateAnswer]
    judge: Judge
    client: Any
    model: str
    cache: Callable[[], CacheFileSys]
    semaphore: Any
    logger: logging.Logger
    debug: bool
    overwrite: bool

    async def evaluate(self, folder: AnswerFolder, answer: AnswerFile) -> AnswerOutcome:
        """Reuse the answer's result, or judge the answer."""
        try:
            data = await asyncio.to_thread(answer.read_bytes)
            metadata = await asyncio.to_thread(_bytes_or_none, answer.meta_path)
        except OSError as error:
            supersede_results(folder.results)
            return AnswerOutcome(answer=answer, error=self._record_failure(folder, self.logger, error))
        folder.copy_inputs(data, metadata)
        if not (self.overwrite or self.debug):
            current = self._current_result(folder, data)
            if current is not None:
                self.logger.info("%s: the last result is up to date", folder.answer_name)
                return AnswerOutcome(answer=answer, result=current, reused=True)
        if not self.debug:
            supersede_results(folder.results)
        path = folder.free_result_path(datetime.now().astimezone(), debug=self.debug)
        with log_files(folder.logs, answer.path.stem, stamp=path.name[:15]) as logger, answer_scope() as scope:
            try:
                result = await self._run(folder, data, logger, scope)
            except errors.JudgeError as error:
                error_text = self._record_failure(folder, logger, scope.failure or error)
                return AnswerOutcome(answer=answer, error=error_text)
        folder.clear_failure()
        write_json(path, result)
        return AnswerOutcome(answer=answer, result=result)

    async def _run(
        self, folder: AnswerFolder, data: bytes, logger: logging.Logger, scope: AnswerScope
    ) -> dict[str, Any]:
        """Run the script and return the result.

        Raises:
            judges.errors.JudgeError: there can be no result.
        """
        began = time.monotonic()
        with judge_import(f"loading the task script of {folder.task_id} failed"):
            script = self.script()
        try:
            cache = self.cache()
        except CacheError as error:
            raise HarnessError(str(error)) from error
        with judge_code(f"judging {folder.task_id}/{folder.answer_name}"):
            returned = await script(
                client=self.client,
                answer=data.decode("utf-8"),
                agent_name=folder.agent,
                answer_name=folder.answer_name,
                cache=cache,
                semaphore=self.semaphore,
                logger=logger,
                model=self.model,
            )
        scope.check()
        seconds = round(time.monotonic() - began, 3)
        summary = with_defaults(checked_result(returned, folder.task_id), scope.decisions)
        summary.setdefault("answer_name", folder.answer_name)
        usage = summary.get("usage")
        return build_result(
            summary,
            id=None,
            task_id=folder.task_id,
            judge=self.judge,
            judged_with=self._judged_with(scope),
            model=self.model,
            prompts=summary.get("prompts", ()),
            answer_sha256=hashlib.sha256(data).hexdigest(),
            tool_version=version("assay"),
            usage=Usage(**usage) if isinstance(usage, dict) else Usage(),
            timing={"judge_s": seconds, "total_s": seconds},
            pages=summary.get("pages", ()),
        )

    def _judged_with(self, scope: AnswerScope) -> dict[str, Any]:
        run = run_description(self.client) | {"judge_usage": scope.usage.as_dict()}
        if run["judge"] is not None:
            run |= dict.fromkeys(("judge_model", "extract_model"), run["judge"]["model"])
        return run

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
        inputs |= {"answer_sha256": hashlib.sha256(data).hexdigest(), "eval_script_sha256": self.judge.sha256}
        if inputs["judge"] is None:  # a client without a judge sends the model that the script was given
            inputs["model"] = self.model
        is_current = all(name in result and result[name] == value for name, value in inputs.items())
        return result if is_current else None

    def _record_failure(self, folder: AnswerFolder, logger: logging.Logger, error: Exception) -> str:
        trace = error.traceback if isinstance(error, errors.JudgeBug) else ""
        for log in (self.logger, logger):
            log.error("%s has no result: %s\n%s", folder.answer_name, error, trace)
        folder.write_failure(str(error), trace)
        return str(error)


def _bytes_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
