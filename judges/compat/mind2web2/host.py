"""Runs a public judge script inside the service: the service's model and pages in, a summary or a JudgeBug out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
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
from judges.settling import Progress
from mind2web2.hosting import EvidenceSource, HostedClient
from mind2web2.look_ahead import Scout
from mind2web2.scouting import Play, gone_ahead
from mind2web2.shared_replies import SharedReplies
from mind2web2.utils.load_eval_script import EvaluateAnswer, load_eval_script
from rubrics.verdict import Usage

__all__ = ["run_script"]

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
    progress: Progress | None = None,
    deadline_s: float | None = None,
    ahead: EvidenceSource | None = None,
) -> dict[str, Any]:
    """What the script says of an answer, ready for JSON and with our ``status`` and ``score`` in it.

    ``model`` is the bare name. ``captures`` are the answer's cited pages, as far as they are captured: what a script
    that reads the cache itself will find there. ``llm`` and ``pages`` hold their own limits. ``progress`` is told the
    leaves done and known so far. What is not settled within ``deadline_s`` is not judged, and the result incomplete.
    ``ahead`` turns look-ahead on: the pages as the scouting run sees them.

    Raises:
        JudgeBug: the file cannot be loaded, raised (unless values it needed could not be read), returned no dict, or
            had made no tree by the deadline; with the traceback.
        JudgeError: the script let an error of the model out.
    """
    load = partial(_load_aside, judge)
    script = await load()
    play = Play(
        task_id=judge.task,
        answer=answer,
        agent_name=agent_name,
        model=model,
        blobs=blobs,
        captures=tuple(captures),
        outside=None if ahead is None else {},
    )
    own: dict[str, Any] = {"separator": separator, "preparer": preparer}
    replies = SharedReplies(llm)
    scout = None if ahead is None else Scout(replies)
    asked = llm if scout is None else replies.view(real=True)
    client = HostedClient(llm=asked, progress=progress, scouted_by=scout, **own)
    limit = asyncio.timeout(deadline_s)
    async with AsyncExitStack() as side_by_side:
        side_by_side.callback(client.let_go)
        if scout is not None and ahead is not None:
            client_for = partial(_scouting_client, **own)
            going = gone_ahead(play, load, client_for, replies=replies, scout=scout, pages=ahead)
            await side_by_side.enter_async_context(going)
        try:
            async with limit:
                said = await play.run(script, client, pages, logger or _log)
        except TimeoutError as error:
            if not limit.expired():
                raise
            said = _cut_short(
                client, f"the judge script of {judge.task!r} did not return within {deadline_s:g} s", error
            )
        except JudgeBug as error:
            if not any(evaluator.extraction_failed for evaluator in client.evaluators):
                raise
            # It stumbled over the empty values it was given, which is no fault of its own.
            said = _cut_short(client, str(error), error)
    return _with_unused(_completed(checked_result(said, judge.task)), replies.unused())


def _scouting_client(llm: LLMClient, scout: Scout, **own: Any) -> HostedClient:
    return HostedClient(llm=llm, scout=scout, **own)


def checked_result(said: Any, task_id: str) -> dict[str, Any]:
    """What a script returned, as plain JSON values; what JSON has no word for becomes text.

    Raises:
        JudgeBug: it is no dict, or its ``final_score`` no number.
    """
    if not isinstance(said, dict):
        raise JudgeBug(f"the judge script of {task_id!r} returned {type(said).__name__}, not a dict")
    with judge_code(f"what the judge script of {task_id!r} returned cannot be written down"):
        text = json.dumps(said, default=str, skipkeys=True, ensure_ascii=False).encode("utf-8", errors="replace")
        plain: dict[str, Any] = json.loads(text, parse_constant=str)
    score = plain.get("final_score", 0.0)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise JudgeBug(f"the judge script of {task_id!r} returned the final_score {score!r}")
    return plain


def _cut_short(client: HostedClient, why: str, error: Exception) -> dict[str, Any]:
    """What the script's evaluator knows so far."""
    if not client.evaluators:
        raise JudgeBug(why) from error
    evaluator = client.evaluators[-1]
    evaluator.cut_short(why)
    return evaluator.get_summary()


async def _load_aside(judge: Judge) -> EvaluateAnswer:
    return await asyncio.to_thread(_load, judge)


def _load(judge: Judge) -> EvaluateAnswer:
    if judge.path is None:
        raise JudgeBug(f"the judge of {judge.task!r} has no file")
    with judge_import(f"loading the judge script of {judge.task!r} failed"):
        return load_eval_script(judge.path)


def _with_unused(result: dict[str, Any], unused: Usage) -> dict[str, Any]:
    """The result with what look-ahead spent on replies that the script then never asked for."""
    if unused != Usage() and isinstance(result.get("usage"), dict):
        result["usage"] = asdict(Usage(**result["usage"]) + unused)
    return result


def _completed(result: dict[str, Any]) -> dict[str, Any]:
    """A script may make its dict without our evaluator: its number is then all there is to know."""
    known = float(result.get("final_score", 0.0))
    certain = {"value": known, "low": known, "high": known}
    return {"final_score": known, "status": "complete", "score": certain, "score_strict": certain} | result
