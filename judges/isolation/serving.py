"""What a judge file's process does from its first frame to its last."""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
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
from judges.isolation.remote import RemoteClaimJudge, RemotePages, RemoteReader
from judges.isolation.rpc_client import Door
from judges.isolation.rpc_server import REAL
from judges.isolation.values import error_value, plain
from judges.isolation.wire import Frame, TooLong, encode
from judges.judge_code import judge_code
from judges.loader import declared_by
from judges.prompting.rendering import Style
from judges.result import native_summary
from judges.runner import JudgeTools, run
from rubrics.verdict import Usage

MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
MAX_LOG_LINES: Final = 5_000
MAX_LOG_CHARS: Final = 2_000

Order: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[Door, Order], Awaitable[Any]]
"""Does what is ordered; returns the result as JSON values."""

_LIMITS: Final = {errno.EFBIG: "file size", errno.EMFILE: "open files"}


def judge_natively(talk: socket.socket, ask: socket.socket) -> None:
    """The entry for native judge files."""
    serve(talk, ask, _judge)


def serve(talk: socket.socket, ask: socket.socket, work: Work) -> None:
    """Carry out one order and say what came of it."""
    asyncio.run(_serve(Door(talk, ask), work))


async def _serve(door: Door, work: Work) -> None:
    order = await door.open()
    _log_through(door, int(order["log_level"]))
    try:
        last = _result(await work(door, order))
    except JudgeBug as error:
        last = {"failed": error_value(_as_limit(error))}
    except (JudgeError, CacheError) as error:
        last = {"failed": error_value(error)}
    await door.end(last)
    sys.stdout.flush()
    # Threads that the file has started, or that wait in it, are not waited for.
    os._exit(0)


def _result(value: Any) -> Frame:
    """The last frame of a run that came to its end.

    Raises:
        ScriptStopped: it is too large.
        JudgeBug: it holds a number that JSON has not.
    """
    frame = {"done": value}
    try:
        if len(encode(frame)) <= MAX_RESULT_BYTES:
            return frame
    except TooLong:
        pass  # as below
    except ValueError as error:
        raise JudgeBug(f"the result cannot be written down: {error}") from error
    raise ScriptStopped(f"the result is larger than {MAX_RESULT_BYTES} bytes", limit="result")


async def _judge(door: Door, order: Order) -> Any:
    text, model = str(order["answer"]["text"]), str(order["model"])
    task, path = str(order["task"]), str(order["path"])
    judge = declared_by(code_in(order), path, task)
    tools = JudgeTools(
        verifier=RemoteClaimJudge(door, REAL, model, answer=text),
        extractor=RemoteReader(door, REAL, model, answer=text, style=Style.NATIVE),
        evidence_for=RemotePages(door, REAL).glance,
    )
    judgement = await run(
        judge,
        Answer(name=str(order["answer"]["name"]), text=text),
        tools,
        progress=lambda done, total: door.tell("progress", done=done, total=total),
        deadline_s=order["deadline_s"],
    )
    with judge_code(f"what the judge of {task!r} declared cannot be written down"):
        summary = native_summary(judgement, agent_name=str(order["agent"]))
    return {"summary": summary, "prompts": list(judgement.prompts), "usage": plain(judgement.usage, Usage)}


def code_in(order: Order) -> CodeType:
    """The code that the service compiled from the bytes it knows the digest of."""
    try:
        code = marshal.loads(base64.b64decode(order["code"]))  # noqa: S302 - the service's own, from this Python
    except (ValueError, EOFError, TypeError, binascii.Error) as error:
        raise JudgeBug(f"the code of {Path(order['path']).name} did not arrive") from error
    if not isinstance(code, CodeType):
        raise JudgeBug(f"the code of {Path(order['path']).name} did not arrive")
    return code


def _as_limit(error: JudgeBug) -> JudgeBug:
    """A bug that is in truth a limit that was met, as that."""
    cause = error.__cause__
    limit = "memory" if isinstance(cause, MemoryError) else None
    if isinstance(cause, OSError):
        limit = _LIMITS.get(cause.errno or 0)
    if limit is None or isinstance(error, ScriptStopped):
        return error
    return ScriptStopped(f"{error} (the limit of {limit})", limit=limit, traceback=error.traceback)


def _log_through(door: Door, level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Handler(door)]
    root.setLevel(level)


class _Handler(logging.Handler):
    """Log lines go to the service, a bounded number of them."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self._door = door
        self._left = MAX_LOG_LINES

    def emit(self, record: logging.LogRecord) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        text = self.format(record)[:MAX_LOG_CHARS] if self._left else "no more log lines are taken from this judge file"
        self._door.tell("log", level=record.levelno, name=record.name, text=text)
