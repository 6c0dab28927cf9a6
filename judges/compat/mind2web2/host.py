"""Host for public task scripts inside the service: runs a script with the service's model and pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture import Capture
from judges.errors import JudgeBug
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.settling import Progress
from judges.source_code import compile_judge, judge_import
from mind2web2.hosted_objects import HostedClient, LocalJudgeFactory
from mind2web2.isolated_run import IsolatedScriptRun
from mind2web2.script_run import ScriptArguments, run_loaded
from mind2web2.task_pages import EvidenceSource, TaskFolder, TaskPages
from mind2web2.utils.load_eval_script import EvaluateAnswer, script_in

__all__ = ["run_script"]

_log = logging.getLogger(__name__)


async def run_script(
    judge: Judge,
    *,
    answer: Answer,
    agent_name: str,
    llm: LLMClient,
    model: str,
    block_builder: BlockBuilder,
    preparer: PagePreparer,
    pages: EvidenceSource,
    blobs: BlobStore,
    captures: Iterable[Capture] = (),
    folder: TaskFolder | None = None,
    on_use: Callable[[Capture], None] = lambda capture: None,
    logger: logging.Logger | None = None,
    progress: Progress | None = None,
    deadline_s: float | None = None,
    process_pool: ForkServerPool | None = None,
) -> dict[str, Any]:
    """Run a script on an answer and return its summary as JSON values, with ``status`` and ``score``.

    Args:
        model: Bare model name.
        captures: Captures of the answer's cited pages, for scripts that read the page cache directly.
        folder: Page cache folder of the task, for such scripts. What a script reads there is in ``page_cache`` of the
            summary.
        on_use: Called with each capture that the script reads directly.
        llm: Model client; applies its own limits, as ``pages`` does.
        progress: Called with the numbers of settled and known leaves.
        deadline_s: Leaves that are not settled in time are not judged, and the result is incomplete.
        process_pool: Runs the script in a child process. Faults of the script then affect only that process.

    Raises:
        JudgeBug: the file cannot be loaded, the script raised (except after a fault), returned no dict, or
            had no tree at the deadline; with the traceback.
        ScriptStopped: the child process exceeded a limit, or did not return.
        JudgeError: the script did not catch an error of the model.
    """
    arguments = ScriptArguments(task_id=judge.task, answer=answer, agent_name=agent_name, model=model, blobs=blobs)
    task_pages = TaskPages(pages, tuple(captures), folder, on_use=on_use)
    if process_pool is not None:
        isolated_run = IsolatedScriptRun(
            judge=judge,
            arguments=arguments,
            llm=llm,
            block_builder=block_builder,
            preparer=preparer,
            pages=task_pages,
        )
        result = await isolated_run.run(process_pool, logger=logger or _log, progress=progress, deadline_s=deadline_s)
    else:
        judging = LocalJudgeFactory(llm=llm, model=model, block_builder=block_builder, preparer=preparer)
        result = await run_loaded(
            arguments,
            partial(_load_in_thread, judge),
            client=HostedClient(llm=llm, judging=judging, progress=progress),
            pages=task_pages,
            logger=logger or _log,
            deadline_s=deadline_s,
        )
    read = task_pages.record()
    if read is not None:
        result["page_cache"] = read
    return result


async def _load_in_thread(judge: Judge) -> EvaluateAnswer:
    return await asyncio.to_thread(_load, judge)


def _load(judge: Judge) -> EvaluateAnswer:
    if judge.path is None or judge.source is None:
        raise JudgeBug(f"the judge of {judge.task!r} was not loaded from a file")
    with judge_import(f"loading the task script of {judge.task!r} failed"):
        return script_in(compile_judge(judge.source, str(judge.path)), judge.path)
