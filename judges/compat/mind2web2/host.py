"""Host for public judge scripts inside the service: runs a script with the service's model and pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
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
from mind2web2.look_ahead import Scout
from mind2web2.scouting import ScriptArguments
from mind2web2.script_run import run_with_look_ahead
from mind2web2.shared_replies import SharedReplies
from mind2web2.task_pages import EvidenceSource, TaskFolder, TaskPages
from mind2web2.utils.load_eval_script import EvaluateAnswer, script_in
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
    look_ahead_pages: EvidenceSource | None = None,
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
        look_ahead_pages: Pages for the scouting run; enables look-ahead.
        process_pool: Runs the script in a child process. Faults of the script then affect only that process.

    Raises:
        JudgeBug: the file cannot be loaded, the script raised (except after a fault), returned no dict, or
            had no tree at the deadline; with the traceback.
        ScriptStopped: the child process exceeded a limit, or did not return.
        JudgeError: the script did not catch an error of the model.
    """
    replies = SharedReplies(llm)
    arguments = ScriptArguments(
        task_id=judge.task,
        answer=answer,
        agent_name=agent_name,
        model=model,
        blobs=blobs,
        tool_replies=None if look_ahead_pages is None else {},
    )
    captures = tuple(captures)
    task_pages = TaskPages(pages, captures, folder, on_use=on_use)
    ahead = None if look_ahead_pages is None else TaskPages(look_ahead_pages, captures, folder)
    if process_pool is not None:
        isolated_run = IsolatedScriptRun(
            judge=judge,
            arguments=arguments,
            llm=llm,
            replies=replies,
            block_builder=block_builder,
            preparer=preparer,
            pages=task_pages,
            look_ahead_pages=ahead,
        )
        result = await isolated_run.run(process_pool, logger=logger or _log, progress=progress, deadline_s=deadline_s)
        return _completed(result, replies.unused(), task_pages)
    result = await run_with_look_ahead(
        arguments,
        partial(_load_in_thread, judge),
        client_for=_ClientFor(
            llm=llm, model=model, replies=replies, block_builder=block_builder, preparer=preparer, progress=progress
        ),
        replies=replies,
        pages=task_pages,
        look_ahead_pages=ahead,
        logger=logger or _log,
        deadline_s=deadline_s,
    )
    return _completed(result, replies.unused(), task_pages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientFor:
    """Creates the clients of runs in this process. Replies are shared only if there are two runs."""

    llm: LLMClient
    model: str
    replies: SharedReplies
    block_builder: BlockBuilder
    preparer: PagePreparer
    progress: Progress | None

    def __call__(self, *, scout: Scout | None = None, scouted_by: Scout | None = None) -> HostedClient:
        alone = scout is None and scouted_by is None
        llm = self.llm if alone else self.replies.view(real=scout is None)
        return HostedClient(
            llm=llm,
            judging=LocalJudgeFactory(
                llm=llm, model=self.model, block_builder=self.block_builder, preparer=self.preparer
            ),
            progress=self.progress if scout is None else None,
            scout=scout,
            scouted_by=scouted_by,
        )


async def _load_in_thread(judge: Judge) -> EvaluateAnswer:
    return await asyncio.to_thread(_load, judge)


def _load(judge: Judge) -> EvaluateAnswer:
    if judge.path is None or judge.source is None:
        raise JudgeBug(f"the judge of {judge.task!r} was not loaded from a file")
    with judge_import(f"loading the judge script of {judge.task!r} failed"):
        return script_in(compile_judge(judge.source, str(judge.path)), judge.path)


def _completed(result: dict[str, Any], unused: Usage, pages: TaskPages) -> dict[str, Any]:
    """Add what the script read in the folder, and the usage of look-ahead replies that it did not request."""
    read = pages.record()
    if read is not None:
        result["page_cache"] = read
    if unused != Usage() and isinstance(result.get("usage"), dict):
        result["usage"] = asdict(Usage(**result["usage"]) + unused)
    return result
