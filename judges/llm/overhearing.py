"""Recording of requests from model clients that a judge script creates itself.

The calls are added to the call log of the answer for which the client is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.recording import CallRecorder, RecordingLLM

_active_recorder: ContextVar[CallRecorder | None] = ContextVar("listening", default=None)


@contextmanager
def recording_calls(recorder: CallRecorder) -> Iterator[None]:
    """Record the calls of ``recorded_client`` clients inside this context, including the tasks started in it."""
    token = _active_recorder.set(recorder)
    try:
        yield
    finally:
        _active_recorder.reset(token)


def recorded_client(client: LLMClient) -> LLMClient:
    """Wrap a client that a judge script created, so that the active recorder receives its calls."""
    return _RecordedIfActive(client)


class _RecordedIfActive:
    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner

    async def complete(self, request: LLMRequest) -> LLMReply:
        recorder = _active_recorder.get()
        client = self._inner if recorder is None else RecordingLLM(self._inner, recorder)
        return await client.complete(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
