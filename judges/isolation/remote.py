"""Proxies in a task file's process: pages, claim judge, extractor and model client that call the service.

The RPC client makes calls that wait for a reply, and sends notifications. One socket is for the event loop, the other
for code that cannot await. Errors of the service are raised here as the same classes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from cache.capture import Evidence
from judges.errors import ExtractionFailed, LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.extractor import ExtractionQuestion, ExtractionReply, ExtractorBase
from judges.isolation.serialization import (
    MAX_CHILD_FRAME_BYTES,
    Content,
    Frame,
    encode,
    error_from_json,
    from_json_value,
    page_from_json,
    page_to_json,
    read_frame,
    receive_blocking,
    send_blocking,
    to_json_value,
)
from judges.llm.client import LLMReply, LLMRequest, Purpose
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.rendering import Style
from judges.settling import JUDGED_LEAF
from judges.verifier import ClaimJudge, ClaimQuestion
from rubrics.verdict import Claim, Usage, Verdict

PROGRESS_INTERVAL_S: Final = 0.1
"""Minimum interval between progress notifications."""


def _exit_process() -> None:
    os._exit(1)


def _ignore() -> None:
    """Do nothing when the connection is closed, because that is expected."""


class ServiceCalls(Protocol):
    """Calls of a task file to the service: over RPC, or in the service's own process."""

    async def call(self, name: str, /, **params: Any) -> Any:
        """Return the reply. Raises the JudgeError or CacheError of the service."""

    def call_blocking(self, name: str, /, **params: Any) -> Any:
        """Like ``call``, for code that cannot await."""

    def notify_progress(self, done: int, total: int) -> None:
        """Report the numbers of settled and known leaves."""

    def reply_schema(self, schema: ReplyType) -> Any:
        """Return the class of a reply in the form in which it is passed to the service."""


class RpcClient:
    """RPC client of a process, opened once in its event loop.

    Calls from that loop go over ``main_socket``; those from other event loops go over ``side_socket``, one at a time.
    """

    def __init__(
        self,
        main_socket: socket.socket,
        side_socket: socket.socket,
        *,
        on_disconnect: Callable[[], None] = _exit_process,
    ) -> None:
        """``on_disconnect`` is called when the service has closed the connection. By default, the process exits."""
        self._main_socket = main_socket
        self._side_file = side_socket.makefile("rwb")
        self._on_disconnect = on_disconnect
        self._lock = threading.Lock()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._outbox: list[bytes] = []
        """Frames of this iteration of the event loop."""
        self._progress: Frame | None = None
        """Progress that has not been sent yet."""

    async def open(self) -> Frame:
        """Open the connection and return the job of this process.

        Raises:
            EOFError: the service has closed the connection.
        """
        self._loop = asyncio.get_running_loop()
        reader, self._writer = await asyncio.open_connection(sock=self._main_socket)
        job = await read_frame(reader)
        if job is None:
            raise EOFError("the service has closed the connection")
        self._reading = asyncio.create_task(self._read(reader))
        return job

    @property
    def is_own_loop(self) -> bool:
        """Whether the running event loop is the one that opened this client."""
        return asyncio.get_running_loop() is self._loop

    async def call(self, name: str, /, **params: Any) -> Any:
        """Return the service's reply. From another event loop, the call goes over the second socket.

        Raises:
            JudgeError, CacheError: raised by the service.
        """
        if not self.is_own_loop:
            return await asyncio.to_thread(self.call_blocking, name, **params)
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send_soon({"id": number, "call": name, "with": params})
            return await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self._send_soon({"cancel": number})
            raise
        finally:
            self._waiting.pop(number, None)

    def call_blocking(self, name: str, /, **params: Any) -> Any:
        """Like ``call``, for code that cannot await. One call at a time.

        Raises:
            JudgeError, CacheError: raised by the service.
        """
        with self._lock:
            send_blocking(self._side_file, {"id": 0, "call": name, "with": params})
            return _result_of(receive_blocking(self._side_file))

    def notify(self, name: str, /, **params: Any) -> None:
        """Send a notification. Thread-safe."""
        self._run_in_own_loop(self._send, {"tell": name, "with": params})

    def notify_progress(self, done: int, total: int) -> None:
        """Send the progress, unless there is newer one within ``PROGRESS_INTERVAL_S``. Thread-safe."""
        self._run_in_own_loop(self._postpone, {"tell": "progress", "with": {"done": done, "total": total}})

    def reply_schema(self, schema: ReplyType) -> Any:
        """Return the fields of the ``ReplySchema`` of a class, because the service does not have the class."""
        return {"name": schema_name(schema), "text": json.dumps(json_schema_of(schema))}

    async def end(self, frame: Frame) -> None:
        """Send the last frame and wait until the service has closed the connection.

        This side must stay open: the service may still be writing a reply that no call awaits, and a write error would
        lose the last frame.

        Raises:
            ValueError: the frame is too long.
        """
        data = encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES)
        if self._writer is None or self._reading is None:
            return
        self._on_disconnect = _ignore
        self._send_progress()
        self._flush()
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.wait({self._reading})
        self._writer.close()

    def _run_in_own_loop(self, action: Callable[[Frame], None], frame: Frame) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        try:
            is_here = self.is_own_loop
        except RuntimeError:
            is_here = False
        if is_here:
            action(frame)
        else:
            self._loop.call_soon_threadsafe(action, frame)

    def _postpone(self, progress: Frame) -> None:
        if self._progress is None:
            asyncio.get_running_loop().call_later(PROGRESS_INTERVAL_S, self._send_progress)
        self._progress = progress

    def _send_progress(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            self._send(progress)

    def _send(self, frame: Frame) -> None:
        self._send_soon(frame)
        self._flush()

    def _send_soon(self, frame: Frame) -> None:
        """Send a frame together with the others of this iteration of the event loop."""
        data = encode(frame, max_bytes=MAX_CHILD_FRAME_BYTES)
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append(data)

    def _flush(self) -> None:
        if self._writer is not None and self._outbox:
            self._writer.write(b"".join(self._outbox))
        self._outbox.clear()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while (frame := await read_frame(reader)) is not None:
            answer = self._waiting.get(frame["re"])
            if answer is None or answer.done():
                continue
            if "error" in frame:
                answer.set_exception(error_from_json(frame["error"]))
            else:
                answer.set_result(frame["ok"])
        self._on_disconnect()


def _result_of(frame: Frame) -> Any:
    if "error" in frame:
        raise error_from_json(frame["error"])
    return frame["ok"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference(Evidence):
    """Page whose text and screenshots stay in the service.

    ``requested_url`` is the URL under which it was requested. ``pages`` returns the complete page.
    """

    requested_url: str
    pages: RemotePages

    async def complete_page(self) -> Evidence:
        return await self.pages.evidence_for(self.requested_url)

    async def with_text(self) -> EvidenceReference:
        """Return the reference with the text and links of the page."""
        page = await self.pages.fetch(self.requested_url, Content.TEXT)
        return replace(self, capture=page.capture, text=page.text, links=page.links)


class RemotePages:
    """Pages of one run: ``evidence_for`` fetches the complete page, ``reference`` only its capture and digests."""

    def __init__(self, calls: ServiceCalls) -> None:
        self._calls = calls

    async def reference(self, url: str) -> Evidence:
        """Return the page without its text and screenshots. Raises the same errors as ``evidence_for``."""
        page = await self.fetch(url, None)
        return EvidenceReference(capture=page.capture, text="", digests=page.digests, requested_url=url, pages=self)

    async def evidence_for(self, url: str) -> Evidence:
        """Return the page with its text and screenshots.

        Raises:
            CacheError: the page does not exist or cannot be fetched.
        """
        return await self.fetch(url, Content.PAGE)

    async def fetch(self, url: str, content: Content | None) -> Evidence:
        """Return the page with this content. Raises the same errors as ``evidence_for``."""
        page = await self._calls.call("evidence", url=url, content=content)
        return page_from_json(page, Evidence)


class _ServiceCaller:
    """Sender of questions to the service. ``answer`` is the answer text that the service already has."""

    def __init__(self, calls: ServiceCalls, model: str, *, answer: str, style: Style) -> None:
        self._calls = calls
        self.model = model
        self.style = style
        self._answer = answer

    def _params(self, question: ClaimQuestion | ExtractionQuestion) -> dict[str, Any]:
        """Return the parameters that claims and extractions have in common."""
        return {
            "model": self.model,
            "task": question.task,
            "answer": None if question.answer == self._answer else question.answer,
            "page": _page_reference(question.evidence),
            "shots": question.use_screenshot,
        }


class RemoteClaimJudge(_ServiceCaller, ClaimJudge):
    """Claim judge that calls the service."""

    async def settle(self, question: ClaimQuestion) -> Verdict:
        response = await self._calls.call(
            "judge",
            **self._params(question),
            claim=to_json_value(question.claim, Claim),
            trials=question.trials,
            cache_only=question.cache_only,
            leaf=JUDGED_LEAF.get(),
        )
        if response is None:
            raise ReplyNotCached
        verdict: Verdict = from_json_value(response, Verdict)
        return verdict


class RemoteExtractor(_ServiceCaller, ExtractorBase):
    """Extractor that calls the service and parses the replies into the task file's classes."""

    async def ask(self, schema: ReplyType, question: ExtractionQuestion) -> ExtractionReply:
        params = self._params(question) | {
            "schema": self._calls.reply_schema(schema),
            "prompt": question.prompt,
            "instruction": question.instruction,
        }
        try:
            response, reply = await _read_into(schema, self._calls, params, purpose="extract")
        except LLMOutputUnusable as error:
            raise ExtractionFailed(
                f"extraction failed: {error}", cause_reason=error.reason, usage=error.usage
            ) from error
        return ExtractionReply(reply=reply, prompt=response["prompt"], evidence=tuple(response["evidence"]))

    async def with_text(self, evidence: Evidence) -> Evidence:
        return await evidence.with_text() if isinstance(evidence, EvidenceReference) else evidence


class RemoteModel:
    """``LLMClient`` that calls a model of the service: the one of the run, or any of a ``provider``."""

    def __init__(self, calls: ServiceCalls, *, provider: str | None = None) -> None:
        self._calls = calls
        self._params = {"provider": provider}

    async def complete(self, request: LLMRequest) -> LLMReply:
        """See ``LLMClient.complete``."""
        params = {
            **self._params,
            "model": request.model,
            "messages": [dict(message) for message in request.messages],
            "schema": None if request.schema is None else self._calls.reply_schema(request.schema),
            "purpose": request.purpose,
            "vote": request.vote,
            "params": dict(request.params),
        }
        _, reply = await _read_into(request.schema, self._calls, params, purpose=request.purpose)
        return reply

    async def aclose(self) -> None:
        """Do nothing: the service's client stays open."""


def _page_reference(evidence: Evidence | None) -> Any:
    if evidence is None:
        return None
    return evidence.requested_url if isinstance(evidence, EvidenceReference) else page_to_json(evidence, Evidence)


async def _read_into(
    schema: ReplyType | None, calls: ServiceCalls, params: Mapping[str, Any], *, purpose: Purpose
) -> tuple[Mapping[str, Any], LLMReply]:
    """Call the service and parse the reply into ``schema``; ask once more if it does not match.

    Return the service's message and the reply.

    Raises:
        JudgeError: raised by the service.
        LLMOutputUnusable: neither reply matches.
    """
    before, unusable = Usage(), None
    while True:
        request = params if unusable is None else {**params, "unusable": unusable.value}
        response = await calls.call("complete", **request)
        usage = before + from_json_value(response["usage"], Usage)
        text, model = str(response["text"]), str(response["model"])
        try:
            parsed = read_reply(RawReply(text=text, finish=FinishReason.STOP, model=model), schema, purpose=purpose)
        except LLMOutputUnusable as error:
            error.usage = usage
            if unusable is not None or error.kind is UnusableKind.EMPTY:
                raise
            before, unusable = usage, error.kind
            continue
        return response, LLMReply(text=text, parsed=parsed, model=model, usage=usage, cached=bool(response["cached"]))
