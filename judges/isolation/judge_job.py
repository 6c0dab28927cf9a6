"""Run of one task file in a child process, from the service's side: the job, its RPC connection and its result.

The child's side of a native task file is ``judge_main``.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import marshal
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from judges.errors import JudgeBug, ScriptStopped
from judges.isolation.fork_server_pool import ForkServerPool, JudgeProcess, ProcessExit
from judges.isolation.process_limits import MAX_FILES, MIB, ScriptLimits
from judges.isolation.rpc_connection import NotificationHandler, RpcConnection, RpcHandler
from judges.isolation.rpc_server import JudgeJob, RpcServer
from judges.isolation.serialization import error_from_json, from_json_value
from judges.registry import Judge
from judges.settling import Progress
from judges.source_code import compile_judge
from rubrics.verdict import Usage

MAX_LOG_CHARS: Final = 10_000
"""Maximum length of one log message of a task file."""
DEADLINE_GRACE_S: Final = 3.0
"""Time after the deadline for the child to return a partial result. Then it is killed."""
_MIN_DEADLINE_S: Final = 1.0
SHUTDOWN_GRACE_S: Final = 2.0
"""Time for a child to exit after it has closed its connection."""
NATIVE_ENTRY: Final = "judges.isolation.judge_main:run_native_judge"


async def run_isolated(
    process_pool: ForkServerPool, job: JudgeJob, *, entry: str, handlers: Mapping[str, RpcHandler], **fields: Any
) -> Any:
    """Run a task file and return its result as JSON values.

    Args:
        entry: Entry point of the process, ``module:function``.
        handlers: RPC methods that the process may call.
        fields: Additional fields of its job.

    Raises:
        ScriptStopped: it exceeded a resource limit, or did not return in time.
        JudgeBug: it raised, or exited without a result.
        JudgeError: it did not catch an error raised by the service.
        IsolationFailed: no process could be started.
    """
    began_s = monotonic()
    order = await asyncio.to_thread(job_message, job) | fields
    path = job.judge.path
    judge_files = () if path is None else (path,)
    async with process_pool.spawn(entry, judge_files=judge_files, terminal=True) as child:
        on_notification: dict[str, NotificationHandler] = {
            "log": lambda params: _take_log(job.logger, params),
            "progress": lambda params: _take_progress(job.progress, params),
        }
        connection = RpcConnection(
            child.main_socket, child.side_socket, handlers=handlers, on_notification=on_notification
        )
        deadline_s = job.deadline_s
        if deadline_s is not None:  # the start of the fork server takes seconds of it
            deadline_s = max(_MIN_DEADLINE_S, deadline_s - (monotonic() - began_s))
        limit = asyncio.timeout(None if deadline_s is None else deadline_s + DEADLINE_GRACE_S)
        try:
            async with limit:
                last = await connection.run({**order, "deadline_s": deadline_s})
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise await _overdue(child, job) from error
        finally:
            connection.close()
        if last is None:
            raise _as_error(await child.wait_for_exit(patience_s=SHUTDOWN_GRACE_S), job.judge, process_pool.limits)
        if "failed" in last:
            raise error_from_json(last["failed"])
        return last["done"]


def job_message(job: JudgeJob) -> dict[str, Any]:
    """Return the job as JSON values, without its deadline. Compiles the task file."""
    judge = job.judge
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
        "answer": {"name": job.answer.name, "text": job.answer.text},
        "agent": job.agent,
        "model": job.model,
        "forbidden_sources": [each.model_dump() for each in job.forbidden.entries],
        "log_level": job.logger.getEffectiveLevel(),
    }


async def _overdue(child: JudgeProcess, job: JudgeJob) -> ScriptStopped:
    ending = await child.wait_for_exit()
    return ScriptStopped(
        f"the judge of {job.judge.task!r} did not return within {job.deadline_s:g} s and was killed",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedJudgement:
    """Result of an isolated native judge: ``judges.result.native_summary``, prompts and usage."""

    summary: Mapping[str, Any]
    prompts: tuple[str, ...]
    usage: Usage


async def judge_isolated(process_pool: ForkServerPool, job: JudgeJob) -> IsolatedJudgement:
    """Run a native task file in a child process. All its requests are handled here.

    Raises:
        JudgeBug, JudgeError: see ``run_isolated``.
    """
    result = await run_isolated(process_pool, job, entry=NATIVE_ENTRY, handlers=RpcServer(job).handlers())
    match result:
        case {"summary": dict(summary), "prompts": list(prompts), "usage": usage}:
            return IsolatedJudgement(
                summary=summary, prompts=tuple(map(str, prompts)), usage=from_json_value(usage, Usage)
            )
    raise JudgeBug(f"the judge of {job.judge.task!r} returned an invalid result")
