"""Evaluation of one answer in the public folder layout: reuses an up-to-date result, otherwise runs the script.

If the script raises, a failure file is written, so that the answer is counted in the summary.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cache.atomic_files import write_atomic
from judges.errors import JudgeBug, JudgeError
from judges.result_files import AnswerFolder, write_json
from judges.source_code import judge_code
from mind2web2.script_run import checked_result
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import EvaluateAnswer
from mind2web2.utils.logging_setup import cleanup_logger, create_logger

FAILURE_FILE = "failed.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvaluation:
    """Settings for all answers of a task. ``script_sha256`` is the hex digest of the script file."""

    script: EvaluateAnswer
    script_sha256: str
    client: Any
    model: str
    cache: CacheFileSys
    semaphore: Any
    logger: logging.Logger
    debug: bool
    overwrite: bool

    async def judge(self, folder: AnswerFolder, answer_file: Path) -> dict[str, Any] | None:
        """Return the answer's result, or None if the script failed."""
        data = await asyncio.to_thread(answer_file.read_bytes)
        if not (self.overwrite or self.debug):
            current = self._current_result(folder, data)
            if current is not None:
                self.logger.info("%s: the last result is up to date", folder.answer_name)
                return current
        folder.path.mkdir(parents=True, exist_ok=True)
        write_atomic(folder.answer_copy, data)
        logger, _ = create_logger(folder.answer_copy.stem, folder.logs, enable_console=False)
        try:
            result = await self._run(folder, data, logger)
        except JudgeError as error:
            self._record_failure(folder, error)
            return None
        finally:
            cleanup_logger(logger)
        (folder.path / FAILURE_FILE).unlink(missing_ok=True)
        write_json(folder.free_result_path(datetime.now().astimezone(), debug=self.debug), result)
        return result

    async def _run(self, folder: AnswerFolder, data: bytes, logger: logging.Logger) -> dict[str, Any]:
        with judge_code(f"judging {folder.task_id}/{folder.answer_name}"):
            returned = await self.script(
                client=self.client,
                answer=data.decode("utf-8"),
                agent_name=folder.agent,
                answer_name=folder.answer_name,
                cache=self.cache,
                semaphore=self.semaphore,
                logger=logger,
                model=self.model,
            )
        result = checked_result(returned, folder.task_id)
        result.setdefault("answer_name", folder.answer_name)
        return result | self._dependencies(data)

    def _dependencies(self, data: bytes) -> dict[str, Any]:
        """Return what the result depends on, except the pages, which the result lists itself."""
        return {
            "answer_sha256": hashlib.sha256(data).hexdigest(),
            "judge": {"script_sha256": self.script_sha256},
            "model": self.model,
        }

    def _current_result(self, folder: AnswerFolder, data: bytes) -> dict[str, Any] | None:
        """Return the newest result if it is complete and nothing it depends on has changed.

        Dependencies that the result does not list are ignored.
        """
        path = folder.newest_result()
        result = None if path is None else read_object(path)
        if result is None or result.get("status", "complete") != "complete":
            return None
        dependencies = self._dependencies(data)
        changed = [name for name, value in dependencies.items() if name in result and _has_changed(result[name], value)]
        changed += [str(page.get("url")) for page in result.get("pages", ()) if self._page_changed(page)]
        return None if changed else result

    def _page_changed(self, page: Mapping[str, Any]) -> bool:
        """Return whether the cached text of a page differs from the one that was judged."""
        url, known = page.get("url"), page.get("sha256")
        if not url or not known or self.cache.has(url) != "web":
            return False
        text, _ = self.cache.get_web(url, get_screenshot=False)
        return str(known) != hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()

    def _record_failure(self, folder: AnswerFolder, error: JudgeError) -> None:
        trace = error.traceback if isinstance(error, JudgeBug) else ""
        self.logger.error("%s has no result: %s\n%s", folder.answer_name, error, trace)
        note = {"answer_name": folder.answer_name, "error": str(error), "traceback": trace}
        write_json(folder.path / FAILURE_FILE, note)


def _has_changed(stored: Any, current: Any) -> bool:
    if isinstance(current, dict):
        return any(stored.get(name, value) != value for name, value in current.items())
    is_other: bool = stored != current
    return is_other


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file is missing or contains something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
