"""Clients that a judge script opens by itself, heard out for the answer that they are used for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.recording import CallRecorder, RecordingLLM

_listening: ContextVar[CallRecorder | None] = ContextVar("listening", default=None)


@contextmanager
def listening(recorder: CallRecorder) -> Iterator[None]:
    """Within this, and in the tasks started there, calls of overheard clients are kept, too."""
    token = _listening.set(recorder)
    try:
        yield
    finally:
        _listening.reset(token)


def overheard(client: LLMClient) -> LLMClient:
    """A client that a judge script opened by itself: its calls belong to whichever answer it is used for."""
    return _Overheard(client)


class _Overheard:
    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner

    async def complete(self, request: LLMRequest) -> LLMReply:
        recorder = _listening.get()
        client = self._inner if recorder is None else RecordingLLM(self._inner, recorder)
        return await client.complete(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
