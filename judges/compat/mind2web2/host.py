"""Runs a public judge script inside the service: the service's model and pages in, a summary or a JudgeBug out."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture import Capture
from judges.blocks import Separator
from judges.errors import JudgeBug
from judges.foreign import judge_code, judge_import
from judges.llm.client import LLMClient
from judges.page_view import PagePreparer
from judges.registry import Judge
from mind2web2.hosting import EvidenceSource, HostedCache, HostedClient
from mind2web2.semaphores import DualSemaphore
from mind2web2.utils.load_eval_script import EvaluateAnswer, load_eval_script

__all__ = ["run_script"]

_UNBOUNDED = 1_000_000
_log = logging.getLogger(__name__)


async def run_script(
    judge: Judge,
    *,
    answer: Answer,
    agent_name: str,
    llm: LLMClient,
    model: str,
    separator: Separator,
    preparer: PagePreparer,
    pages: EvidenceSource,
    blobs: BlobStore,
    captures: Iterable[Capture] = (),
    logger: logging.Logger | None = None,
) -> dict[str, Any]:
    """What the script says of an answer, ready for JSON and with our ``status`` and ``score`` in it.

    ``model`` is the bare name. ``captures`` are the answer's cited pages, as far as they are captured: what a script
    that reads the cache itself will find there. ``llm`` and ``pages`` hold their own limits.

    Raises:
        JudgeBug: the file cannot be loaded, raised, or returned no dict; with the traceback.
        JudgeError: the script let an error of the model out.
    """
    script = await asyncio.to_thread(_load, judge)
    with tempfile.TemporaryDirectory(prefix="mind2web2-") as folder:
        cache = HostedCache(Path(folder), pages=pages, blobs=blobs, captures=captures)
        with judge_code(f"the judge script of {judge.task!r} raised"):
            said = await script(
                client=HostedClient(llm=llm, separator=separator, preparer=preparer),
                answer=answer.text,
                agent_name=agent_name,
                answer_name=answer.name,
                cache=cache,
                # The model and the page cache are limited where they are; this is for a script's own use.
                semaphore=DualSemaphore(asyncio.Semaphore(_UNBOUNDED), asyncio.Semaphore(_UNBOUNDED)),
                logger=logger or _log,
                model=model,
            )
    return _completed(checked_result(said, judge.task))


def checked_result(said: Any, task_id: str) -> dict[str, Any]:
    """What a script returned, as plain JSON values; what JSON has no word for becomes text.

    Raises:
        JudgeBug: it is no dict.
    """
    if not isinstance(said, dict):
        raise JudgeBug(f"the judge script of {task_id!r} returned {type(said).__name__}, not a dict")
    with judge_code(f"what the judge script of {task_id!r} returned cannot be written down"):
        plain: dict[str, Any] = json.loads(json.dumps(said, default=str, skipkeys=True))
    return plain


def _load(judge: Judge) -> EvaluateAnswer:
    if judge.path is None:
        raise JudgeBug(f"the judge of {judge.task!r} has no file")
    with judge_import(f"loading the judge script of {judge.task!r} failed"):
        return load_eval_script(judge.path)


def _completed(result: dict[str, Any]) -> dict[str, Any]:
    """A script may make its dict without our evaluator: its number is then all there is to know."""
    known = float(result.get("final_score") or 0.0)
    certain = {"value": known, "low": known, "high": known}
    return {"final_score": known, "status": "complete", "score": certain, "score_strict": certain} | result
