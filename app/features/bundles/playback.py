"""Offline substitutes for models, captures and script tools, which serve everything from a bundle.

Each request that the bundle cannot answer is recorded.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel

from cache.backends.documents import Document, read_document
from cache.capture import CaptureOutcome, Observation
from judges.errors import (
    LLMBudgetExceeded,
    LLMError,
    LLMOutputUnusable,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
    UnusableKind,
)
from judges.llm.cached import parse_stored
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.recorded_calls import portable_request_key
from judges.llm.response_cache import StoredReply
from mind2web2.outside import LiveBrowser
from rubrics.verdict import Reason, Usage

UNKNOWN_REQUEST_TIMEOUT_S: Final = 2.0
"""Seconds before a request without a recorded reply fails. The original request may have been cancelled because another
page supported the claim. The replay cancels it as well within this time, and nothing counts as missing."""

_SHOWN_CHARS = 160


class RecordedFault(BaseModel):
    """Error of a call that gave no usable reply."""

    reason: str | None
    message: str


class RecordedCall(BaseModel):
    """Outcome of one recorded call: its reply or its fault."""

    reply: str | None = None
    by: str = ""
    usage: Usage
    fault: RecordedFault | None = None
    text_only: bool = False


class MissingRequests:
    """Requests that the bundle could not answer, in order of first occurrence."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def note(self, what: str) -> None:
        self.found.setdefault(what)


class ReplayLLM:
    """Model client that replays recorded calls.

    A repeated request gets the next recorded reply, and the last one again when none is left.
    """

    def __init__(self, calls: Mapping[str, list[RecordedCall]], lacking: MissingRequests, *, patience_s: float) -> None:
        self._remaining = {key: deque(recorded) for key, recorded in calls.items()}
        self._lacking = lacking
        self._patience_s = patience_s

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = await asyncio.to_thread(portable_request_key, request)
        recorded = self._remaining.get(key)
        if not recorded:
            await asyncio.sleep(self._patience_s)
            self._lacking.note(f"a request to {request.model}: {_describe(request)}")
            raise LLMUnavailable("not in the bundle")
        call = recorded.popleft() if len(recorded) > 1 else recorded[0]
        if call.fault is not None:
            raise _fault(call.fault, call.usage)
        reply = parse_stored(request, StoredReply(text=call.reply or "", model=call.by, text_only=call.text_only))
        if reply is None:
            self._lacking.note(f"a usable reply to {_describe(request)}")
            raise LLMOutputUnusable(
                UnusableKind.OFF_SCHEMA, "the reply in the bundle does not match the schema of the request"
            )
        return reply

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


def by_key(calls: Iterable[tuple[str, RecordedCall]]) -> dict[str, list[RecordedCall]]:
    """Group calls by request key."""
    found: dict[str, list[RecordedCall]] = defaultdict(list)
    for key, call in calls:
        found[key].append(call)
    return dict(found)


class OfflineCapturer:
    """``Capturer`` without network access."""

    def __init__(self, lacking: MissingRequests) -> None:
        self._lacking = lacking

    async def capture(self, url: str) -> Observation:
        return _missing_page(url, self._lacking)

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


class OfflineTools:
    """Tools of judge scripts without network access.

    Documents are parsed locally; model requests go to the replay client.
    """

    def __init__(self, model: LLMClient, lacking: MissingRequests) -> None:
        self._model = model
        self._lacking = lacking

    async def fetch(self, url: str, *, deadline_s: float = 0.0) -> Observation:
        return _missing_page(url, self._lacking)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int) -> LiveBrowser:
        return _OfflineBrowser(self._lacking)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        self._lacking.note("a request to the Maps API")
        raise ValueError("replies of the Maps API are not in the bundle")

    def model(self, provider: str) -> LLMClient:
        return self._model


class _OfflineBrowser:
    def __init__(self, lacking: MissingRequests) -> None:
        self._lacking = lacking

    async def observe(self, url: str) -> Observation:
        return _missing_page(url, self._lacking)

    async def open(self) -> None:
        """Do nothing: there is no browser to open."""

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


def _missing_page(url: str, lacking: MissingRequests) -> Observation:
    lacking.note(f"the page {url}")
    return Observation(
        url=url,
        outcome=CaptureOutcome.EGRESS_DENIED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend="bundle",
        detail="not in the bundle",
    )


def _describe(request: LLMRequest) -> str:
    asked = request.parts.get("claim") or request.parts.get("prompt") or str(request.messages[-1].get("content"))
    return f"{request.prompt or request.purpose}, vote {request.vote}: {asked[:_SHOWN_CHARS]}"


def _fault(fault: RecordedFault, usage: Usage) -> LLMError:
    """Recreate the recorded error from its reason."""
    message = fault.message
    match fault.reason:
        case Reason.LLM_REJECTED:
            return LLMRejected(message, usage=usage)
        case Reason.LLM_OUTPUT_UNUSABLE:
            return LLMOutputUnusable(UnusableKind.OFF_SCHEMA, message, usage=usage)
        case Reason.BUDGET:
            return LLMBudgetExceeded(message, usage=usage)
        case Reason.TIMEOUT:
            return LLMTimeout(message, usage=usage)
        case _:
            return LLMUnavailable(message, usage=usage)
