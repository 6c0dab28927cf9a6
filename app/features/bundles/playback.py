"""The world as a bundle has it: models that say what they said, pages as they were captured, and nothing else.

Whatever is asked for and is not in the bundle is noted by name.
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
from judges.llm.cached import read_for
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.recorded_calls import asked_key
from judges.llm.response_cache import StoredReply
from mind2web2.outside import Live
from rubrics.verdict import Reason, Usage

PATIENCE_S: Final = 2.0
"""How long a question waits that nobody has an answer to. When it was asked first, it may have been called off, because
another page had supported the claim; it will be again, and then nothing is missing."""

_SHOWN_CHARS = 160


class Fault(BaseModel):
    """Why a call gave no usable reply."""

    reason: str | None
    message: str


class Said(BaseModel):
    """What came of one call in a bundle; its reply, or its fault."""

    reply: str | None = None
    by: str = ""
    usage: Usage
    fault: Fault | None = None
    text_only: bool = False


class Lacking:
    """What was asked for and is not in the bundle, in the order in which it was noticed."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def note(self, what: str) -> None:
        self.found.setdefault(what)


class PlayedLLM:
    """A model that answers from what is in a bundle. The same question asked again gets the next reply to it."""

    def __init__(self, calls: Mapping[str, list[Said]], lacking: Lacking, *, patience_s: float) -> None:
        self._left = {key: deque(said) for key, said in calls.items()}
        self._lacking = lacking
        self._patience_s = patience_s

    async def complete(self, request: LLMRequest) -> LLMReply:
        key = await asyncio.to_thread(asked_key, request)
        said = self._left.get(key)
        if not said:
            await asyncio.sleep(self._patience_s)
            self._lacking.note(f"a request to {request.model}: {_named(request)}")
            raise LLMUnavailable("not in the bundle")
        call = said.popleft() if len(said) > 1 else said[0]
        if call.fault is not None:
            raise _fault(call.fault, call.usage)
        reply = read_for(request, StoredReply(text=call.reply or "", model=call.by, text_only=call.text_only))
        if reply is None:
            self._lacking.note(f"a usable reply to {_named(request)}")
            raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, "the reply in the bundle does not fit the request")
        return reply

    async def aclose(self) -> None:
        """Nothing was opened."""


def by_key(calls: Iterable[tuple[str, Said]]) -> dict[str, list[Said]]:
    """Calls by what was asked."""
    found: dict[str, list[Said]] = defaultdict(list)
    for key, call in calls:
        found[key].append(call)
    return dict(found)


class NoWeb:
    """The ``Capturer`` of a machine without a web."""

    def __init__(self, lacking: Lacking) -> None:
        self._lacking = lacking

    async def capture(self, url: str) -> Observation:
        return _unseen(url, self._lacking)

    async def aclose(self) -> None:
        """Nothing was opened."""


class Nowhere:
    """What the tools of judge scripts find where there is no world: models as above, documents they have at hand."""

    def __init__(self, model: LLMClient, lacking: Lacking) -> None:
        self._model = model
        self._lacking = lacking

    async def fetch(self, url: str, *, deadline_s: float = 0.0) -> Observation:
        return _unseen(url, self._lacking)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int) -> Live:
        return _NoLive(self._lacking)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        self._lacking.note("a question to the Maps API")
        raise ValueError("what the Maps API said is not in the bundle")

    def model(self, provider: str) -> LLMClient:
        return self._model


class _NoLive:
    def __init__(self, lacking: Lacking) -> None:
        self._lacking = lacking

    async def observe(self, url: str) -> Observation:
        return _unseen(url, self._lacking)

    async def open(self) -> None:
        """There is nothing to open."""

    async def aclose(self) -> None:
        """Nothing was opened."""


def _unseen(url: str, lacking: Lacking) -> Observation:
    lacking.note(f"the page {url}")
    return Observation(
        url=url,
        outcome=CaptureOutcome.EGRESS_DENIED,
        captured_at=datetime.now(UTC),
        duration_s=0.0,
        backend="bundle",
        detail="not in the bundle",
    )


def _named(request: LLMRequest) -> str:
    asked = request.parts.get("claim") or request.parts.get("prompt") or str(request.messages[-1].get("content"))
    return f"{request.prompt or request.purpose}, vote {request.vote}: {asked[:_SHOWN_CHARS]}"


def _fault(fault: Fault, usage: Usage) -> LLMError:
    """The error that was met, as far as anybody can tell one from another by it."""
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
