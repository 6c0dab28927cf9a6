"""Deduplication of tool requests (maps, arXiv) between the two runs of a script with look-ahead."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

ToolReplies = dict[Hashable, asyncio.Task[Any]]
"""Requests by either run of one script."""

_tool_replies: ContextVar[ToolReplies | None] = ContextVar("tool_replies", default=None)


@contextmanager
def share_replies(replies: ToolReplies | None) -> Iterator[None]:
    """Share replies inside the block and in tasks started there. With None, every request is sent."""
    before = _tool_replies.set(replies)
    try:
        yield
    finally:
        _tool_replies.reset(before)


async def request_once(request_key: Hashable, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the reply to ``request_key``, as a copy for each run. Failed requests are retried."""
    replies = _tool_replies.get()
    if replies is None:
        return await send()
    task: asyncio.Task[T] | None = replies.get(request_key)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = replies[request_key] = asyncio.create_task(send())
    # Shielded: if this run is cancelled, the other one may still need the reply.
    return copy.deepcopy(await asyncio.shield(task))


async def cancel_pending(replies: ToolReplies) -> None:
    """Cancel pending requests after both runs."""
    for task in replies.values():
        task.cancel()
    if replies:
        await asyncio.wait(set(replies.values()))
