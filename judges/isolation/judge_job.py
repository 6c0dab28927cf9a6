"""Run of one task file in a child process, from the service's side: the job, its RPC connection and its result.

The child's side of a native task file is ``judge_main``.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import marshal
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from answers.submission import Answer
from cache.capture import Evidence
from judges.errors import JudgeBug, ScriptStopped
from judges.isolation.fork_server_pool import ForkServerPool, JudgeProcess, ProcessExit
from judges.isolation.process_limits import MAX_FILES, MIB, ScriptLimits
from judges.isolation.rpc_connection import NotificationHandler, RpcConnection, RpcHandler
from judges.isolation.rpc_server import Bodies, RpcServer, RunServices
from judges.isolation.serialization import error_from_json, from_json_value
from judges.llm.client import LLMClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.settling import Progress
from judges.source_code import compile_judge
from judges.verifier import Verifier
from rubrics.verdict import Usage

MAX_LOG_CHARS: Final = 10_000
"""Maximum length of one log message of a task file."""
DEADLINE_GRACE_S: Final = 3.0
"""Time after the deadline for the child to return a partial result. Then it is killed."""
_MIN_DEADLINE_S: Final = 1.0
SHUTDOWN_GRACE_S: Final = 2.0
"""Time for a child to exit after it has closed its connection."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeJob:
    """Job for one child process.

    Attributes:
        entry: Entry point, ``module:function``.
        extra_fields: Additional fields for this entry point.
        handlers: RPC methods that the child may call.
    """

    entry: str
    judge: Judge
    answer: Answer
    agent: str
    model: str
    handlers: Mapping[str, RpcHandler]
    deadline_s: float | None = None
    progress: Progress | None = None
    logger: logging.Logger = _log
    extra_fields: Mapping[str, Any] = field(default_factory=dict)


async def run_isolated(process_pool: ForkServerPool, judge_job: JudgeJob) -> Any:
    """Run a task file and return its result as JSON values.

    Raises:
        ScriptStopped: it exceeded a resource limit, or did not return in time.
        JudgeBug: it raised, or exited without a result.
        JudgeError: it did not catch an error raised by the service.
        IsolationFailed: no process could be started.
    """
    began_s = monotonic()
    order = await asyncio.to_thread(_job_message, judge_job)
    path = judge_job.judge.path
    judge_files = () if path is None else (path,)
    async with process_pool.spawn(judge_job.entry, judge_files=judge_files, terminal=True) as child:
        on_notification: dict[str, NotificationHandler] = {
            "log": lambda params: _take_log(judge_job.logger, params),
            "progress": lambda params: _take_progress(judge_job.progress, params),
        }
        connection = RpcConnection(
            child.main_socket, child.side_socket, handlers=judge_job.handlers, on_notification=on_notification
        )
        deadline_s = judge_job.deadline_s
        if deadline_s is not None:  # the start of the fork server takes seconds of it
            deadline_s = max(_MIN_DEADLINE_S, deadline_s - (monotonic() - began_s))
        limit = asyncio.timeout(None if deadline_s is None else deadline_s + DEADLINE_GRACE_S)
        try:
            async with limit:
                last = await connection.run({**order, "deadline_s": deadline_s})
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise await _overdue(child, judge_job) from error
        finally:
            connection.close()
        if last is None:
            raise _as_error(
                await child.wait_for_exit(patience_s=SHUTDOWN_GRACE_S), judge_job.judge, process_pool.limits
            )
        if "failed" in last:
            raise error_from_json(last["failed"])
        return last["done"]


def _job_message(judge_job: JudgeJob) -> dict[str, Any]:
    judge = judge_job.judge
    if judge.source is None or judge.path is None:
        raise JudgeBug(f"the judge of {judge.task!r} was not loaded from a file")
    try:
        code = compile_judge(judge.source, str(judge.path))
    except (SyntaxError, ValueError) as error:
        raise JudgeBug(f"the judge of {judge.task!r} cannot be compiled: {error}") from error
    return {
        "task": judge.task,
        "path": str(judge.path),
        "source": judge.source.decode("utf-8", "replace"),
        "code": base64.b64encode(marshal.dumps(code)).decode("ascii"),
        "answer": {"name": judge_job.answer.name, "text": judge_job.answer.text},
        "agent": judge_job.agent,
        "model": judge_job.model,
        "log_level": judge_job.logger.getEffectiveLevel(),
        **judge_job.extra_fields,
    }


async def _overdue(child: JudgeProcess, judge_job: JudgeJob) -> ScriptStopped:
    ending = await child.wait_for_exit()
    return ScriptStopped(
        f"the judge of {judge_job.judge.task!r} did not return within {judge_job.deadline_s:g} s and was killed",
        limit="time",
        traceback=ending.tail,
    )


def _as_error(ending: ProcessExit, judge: Judge, limits: ScriptLimits) -> JudgeBug:
    """Return the error for a process that ended without a result, from how it ended."""
    subject = f"the judge of {judge.task!r}"
    stopped = {
        "output": ("output", f"printed more than {limits.output_bytes} bytes"),
        "processes": ("processes", f"started more than {limits.processes} processes"),
        "threads": ("threads", f"had more than {limits.threads} threads"),
        "disk": ("disk", f"used more than {limits.disk_bytes} bytes of disk, or {MAX_FILES} files"),
    }.get(ending.stopped or "")
    if stopped is None and _met_cpu_limit(ending, limits):
        stopped = ("cpu", f"used more than {limits.cpu_s} s of CPU time")
    if stopped is None and ending.tail.rstrip().endswith("MemoryError"):
        stopped = ("memory", f"exceeded its memory limit ({limits.memory_bytes // MIB} MiB)")
    if stopped is None and _was_killed_from_outside(ending):
        cause = "was killed, probably because the machine ran out of memory"
        stopped = ("machine", f"{cause}. Try again with fewer answers at a time")
    if stopped is not None:
        limit, what = stopped
        return ScriptStopped(f"{subject} {what}", limit=limit, traceback=ending.tail)
    if ending.signal is not None:
        return JudgeBug(f"{subject} was killed by {signal.Signals(ending.signal).name}", traceback=ending.tail)
    return JudgeBug(f"{subject} exited (status {ending.exit}) without a result", traceback=ending.tail)


def _met_cpu_limit(ending: ProcessExit, limits: ScriptLimits) -> bool:
    return ending.signal == signal.SIGXCPU or (ending.signal == signal.SIGKILL and ending.cpu_s >= limits.cpu_s)


def _was_killed_from_outside(ending: ProcessExit) -> bool:
    """Return whether the kernel killed the process, usually because the machine ran out of memory."""
    return ending.signal == signal.SIGKILL and ending.stopped is None


def _take_log(logger: logging.Logger, params: Mapping[str, Any]) -> None:
    level, name, text = params.get("level"), params.get("name"), params.get("text")
    if isinstance(level, int) and isinstance(name, str) and isinstance(text, str):
        logger.log(level, "%s", text[:MAX_LOG_CHARS], extra={"judge_logger": name[:100]})


def _take_progress(progress: Progress | None, params: Mapping[str, Any]) -> None:
    done, total = params.get("done"), params.get("total")
    if progress is not None and isinstance(done, int) and isinstance(total, int) and 0 <= done <= total:
        progress(done, total)


ENTRY = "judges.isolation.judge_main:run_native_judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedJudgement:
    """Result of an isolated native judge: ``judges.result.native_summary``, prompts and usage."""

    summary: Mapping[str, Any]
    prompts: tuple[str, ...]
    usage: Usage


async def judge_isolated(
    judge: Judge,
    answer: Answer,
    *,
    agent: str,
    llm: LLMClient,
    model: str,
    block_builder: BlockBuilder,
    preparer: PagePreparer,
    evidence_for: Callable[[str], Awaitable[Evidence]],
    bodies: Bodies,
    process_pool: ForkServerPool,
    progress: Progress | None = None,
    deadline_s: float | None = None,
    verifier: Callable[..., Verifier] = Verifier,
) -> IsolatedJudgement:
    """Run a native task file in a child process. All its requests are handled here.

    Raises:
        JudgeBug, JudgeError: see ``run_isolated``.
    """
    services = RunServices(
        llm=llm,
        block_builder=block_builder,
        preparer=preparer,
        own_preparer=PagePreparer(block_builder),
        evidence_for=evidence_for,
        verifier=verifier,
    )
    judge_job = JudgeJob(
        entry=ENTRY,
        judge=judge,
        answer=answer,
        agent=agent,
        model=model,
        handlers=RpcServer(services, answer=answer.text, bodies=bodies).handlers(),
        deadline_s=deadline_s,
        progress=progress,
    )
    result = await run_isolated(process_pool, judge_job)
    match result:
        case {"summary": dict(summary), "prompts": list(prompts), "usage": usage}:
            return IsolatedJudgement(
                summary=summary, prompts=tuple(map(str, prompts)), usage=from_json_value(usage, Usage)
            )
    raise JudgeBug(f"the judge of {judge.task!r} returned an invalid result")
