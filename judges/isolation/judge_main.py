"""Main program of a task file's process, from its first frame to its last."""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import linecache
import logging
import marshal
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, Final, TypeAlias

from answers.submission import Answer
from cache.errors import CacheError
from judges.errors import JudgeBug, JudgeError, ScriptStopped
from judges.forbidden_sources import ForbiddenSource, ForbiddenSources
from judges.isolation.remote import RemoteClaimJudge, RemoteExtractor, RemotePages, RpcClient
from judges.isolation.serialization import (
    MAX_CHILD_FRAME_BYTES,
    MAX_CHILD_VALUES,
    Frame,
    FrameTooLarge,
    encode,
    error_to_json,
    max_values,
    to_json_value,
)
from judges.loader import run_native_file
from judges.prompting.rendering import Style
from judges.result import native_summary
from judges.runner import JudgeTools, run_judge
from judges.source_code import judge_code, reserve_memory
from judges.verifier import judge_named
from rubrics.verdict import Usage

MAX_LOG_LINES: Final = 5_000
MAX_LOG_CHARS: Final = 2_000

JobMessage: TypeAlias = Mapping[str, Any]
JobFunction: TypeAlias = Callable[[RpcClient, JobMessage], Awaitable[Any]]
"""Runs a job and returns the result as JSON values."""

_LIMITS: Final = {errno.EFBIG: "file size", errno.EMFILE: "open files"}


def run_native_judge(main_socket: socket.socket, side_socket: socket.socket) -> None:
    """Run a native task file. Entry point of ``fork_server.run_script_process``."""
    run_process(main_socket, side_socket, _judge)


def run_process(main_socket: socket.socket, side_socket: socket.socket, work: JobFunction) -> None:
    """Run one job and send its result."""
    asyncio.run(_serve(RpcClient(main_socket, side_socket), work))


async def _serve(rpc: RpcClient, work: JobFunction) -> None:
    job = await rpc.open()
    _install_log_handler(rpc, int(job["log_level"]))
    reserve_memory()
    try:
        last = _result(await work(rpc, job))
    except JudgeBug as error:
        last = {"failed": error_to_json(_limit_error(error))}
    except (JudgeError, CacheError) as error:
        last = {"failed": error_to_json(error)}
    await rpc.end(last)
    sys.stdout.flush()
    # Threads of the task file are not joined.
    os._exit(0)


def _result(value: Any) -> Frame:
    """Return the last frame of a successful run.

    Raises:
        ScriptStopped: the result is too large.
        JudgeBug: the result contains NaN or an infinity.
    """
    frame = {"done": value}
    try:
        body = encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES)
    except FrameTooLarge:
        raise ScriptStopped(f"the result is larger than {MAX_CHILD_FRAME_BYTES} bytes", limit="result") from None
    except ValueError as error:
        raise JudgeBug(f"the result cannot be written as JSON: {error}") from error
    if max_values(body) > MAX_CHILD_VALUES:
        raise ScriptStopped(f"the result has more than {MAX_CHILD_VALUES} values", limit="result")
    return frame


async def _judge(rpc: RpcClient, job: JobMessage) -> Any:
    text, model = str(job["answer"]["text"]), str(job["model"])
    task, path = str(job["task"]), str(job["path"])
    judge = run_native_file(code_in(job), path, task)
    tools = JudgeTools(
        verifier=judge_named(model, lambda member: RemoteClaimJudge(rpc, member, answer=text, style=Style.NATIVE)),
        extractor=RemoteExtractor(rpc, model, answer=text, style=Style.NATIVE),
        evidence_for=RemotePages(rpc).reference,
        forbidden=ForbiddenSources(map(ForbiddenSource.model_validate, job["forbidden_sources"])),
    )
    judgement = await run_judge(
        judge,
        Answer(name=str(job["answer"]["name"]), text=text),
        tools,
        progress=rpc.notify_progress,
        deadline_s=job["deadline_s"],
    )
    with judge_code(f"the declarations of the judge of {task!r} cannot be written as JSON"):
        summary = native_summary(judgement, agent_name=str(job["agent"]))
    return {"summary": summary, "prompts": list(judgement.prompts), "usage": to_json_value(judgement.usage, Usage)}


def code_in(job: JobMessage) -> CodeType:
    """Return the code that the service compiled from the bytes whose digest it knows."""
    path = str(job["path"])
    try:
        code = marshal.loads(base64.b64decode(job["code"]))  # noqa: S302 - sent by the service, same Python version
    except (ValueError, EOFError, TypeError, binascii.Error) as error:
        raise JudgeBug(f"the code of {Path(job['path']).name} was not received") from error
    if not isinstance(code, CodeType):
        raise JudgeBug(f"the code of {Path(job['path']).name} was not received")
    # For the lines in tracebacks: this process may be unable to read the file.
    linecache.cache[path] = (len(job["source"]), None, job["source"].splitlines(keepends=True), path)
    return code


def _limit_error(error: JudgeBug) -> JudgeBug:
    """Return a ``ScriptStopped`` if the error was caused by a resource limit, else the error itself."""
    cause = error.__cause__
    limit = "memory" if isinstance(cause, MemoryError) else None
    if isinstance(cause, OSError):
        limit = _LIMITS.get(cause.errno or 0)
    if limit is None or isinstance(error, ScriptStopped):
        return error
    return ScriptStopped(f"{error} (limit exceeded: {limit})", limit=limit, traceback=error.traceback)


def _install_log_handler(rpc: RpcClient, level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Handler(rpc)]
    root.setLevel(level)


class _Handler(logging.Handler):
    """Log handler that sends records to the service, up to ``MAX_LOG_LINES``."""

    def __init__(self, rpc: RpcClient) -> None:
        super().__init__()
        self._rpc = rpc
        self._left = MAX_LOG_LINES

    def emit(self, record: logging.LogRecord) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        text = self.format(record)[:MAX_LOG_CHARS] if self._left else "further log lines of this task file are dropped"
        self._rpc.notify("log", level=record.levelno, name=record.name, text=text)
