"""Call log of a result: all model requests with their replies, stored together with the source of the judge file."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import structlog

from app.engine.pages_seen import AnswerPages
from app.engine.runtime import Runtime
from cache.blobs import BlobArea
from cache.errors import BlobStoreFailed
from judges.llm.client import LLMClient
from judges.llm.overhearing import recording_calls
from judges.llm.recording import CallRecorder, RecordingLLM
from judges.registry import Judge

_log = structlog.get_logger(__name__)


class CallLog:
    """Call log of one answer. Use it as a context manager: it records until the block ends."""

    def __init__(self, runtime: Runtime, pages: AnswerPages, result_id: str | None) -> None:
        self._runtime = runtime
        self._pages = pages
        self._stack = ExitStack()
        self._recorder = CallRecorder(result_id, kept=self._is_page_body, mask=runtime.redactor.redact)

    def recording(self, client: LLMClient) -> LLMClient:
        """Return a client that records the requests to ``client``."""
        return RecordingLLM(client, self._recorder)

    async def kept(self, judge: Judge) -> dict[str, Any] | None:
        """Store the log. Return its entry in the result, or None if the store fails, which does not fail the job."""
        try:
            if judge.source is not None:
                await self._runtime.blobs.put_in_area(BlobArea.SCRIPTS, judge.source)
            record = await self._recorder.finished()
            sha256 = await self._runtime.blobs.put_in_area(BlobArea.CALLS, record)
        except BlobStoreFailed as error:
            _log.warning("call log not stored", task_id=judge.task, error=str(error))
            return None
        return {"sha256": sha256, "bytes": len(record), "count": self._recorder.calls}

    def _is_page_body(self, sha256: str) -> bool:
        return any(blob.sha256 == sha256 for capture in self._pages.seen for blob in capture.blobs.values())

    def __enter__(self) -> Self:
        self._stack.enter_context(recording_calls(self._recorder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._recorder.close()
