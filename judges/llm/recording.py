"""Keeps what a model was asked for one answer and what it said, so that both can be looked at and played back.

A record is one body: a head in JSON, and behind it the long texts and the pictures, each once however many requests
hold it. Block tags are cut out of texts before that, so that a page shown with fifty claims is one piece.

    ASSAYCALLS1\\n  8 bytes: length of the head  head (zlib)  pieces one after the other
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from pydantic import BaseModel

from judges.errors import LLMError
from judges.llm.client import LLMClient, LLMReply, LLMRequest, Message
from judges.llm.images import DataURI
from judges.llm.remote import sent_params
from judges.llm.said import CALLED_OFF, has_schema_in_words, page_chars_of, said_in_fault, said_in_reply, was_repaired
from judges.llm.shrinking import with_page_of
from judges.prompting.prompts.library import load_prompt

MAGIC: Final = b"ASSAYCALLS1\n"
HEAD: Final = struct.Struct(">Q")
LONG_CHARS: Final = 1024
"""Texts from this length on are pieces of their own."""
MAX_PIECES_BYTES: Final = 128 * 1024 * 1024
"""Of one record. What no longer fits is named by its hash alone, and counted."""

_IN_MEMORY_BYTES = 512 * 1024
_THREAD_FROM_CHARS = 64 * 1024
_MEMORY_OF_TEXTS = 16
_QUICK = 1
_TAG = re.compile(r"</?[a-z_]+ [0-9a-f]{32}>")


class CallRecorder:
    """The record of one answer while it is made. ``close`` when done; what was not finished is forgotten.

    ``of`` is the id of the result: no two results have one record, so that each can be forgotten with its own.
    ``kept`` says of the hash of a picture whether its bytes are kept elsewhere already, ``mask`` takes secrets out of
    what providers say of a fault.
    """

    def __init__(
        self,
        of: str | None,
        *,
        kept: Callable[[str], bool] = lambda sha256: False,
        mask: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._of = of
        self._kept = kept
        self._mask = mask
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by close()
        self._pieces: dict[str, dict[str, Any]] = {}
        self._left_out: set[str] = set()
        self._pictures: dict[str, str] = {}
        self._texts: dict[str, list[Any]] = {}
        self._prompts: dict[str, str] = {}
        self._schemas: dict[str, Any] = {}
        self._calls: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
        # A script's own clients may work in another thread, with an event loop of its own.
        self._turn = Lock()
        self._is_finished = False

    @property
    def calls(self) -> int:
        """How many calls have come to an end."""
        return len(self._calls)

    async def replied(self, request: LLMRequest, reply: LLMReply) -> None:
        """Keep a call that went well."""
        await self._add(request, said_in_reply(reply, self._mask))

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        """Keep a call that gave no usable reply."""
        await self._add(request, said_in_fault(error, self._mask))

    def called_off(self, request: LLMRequest) -> None:
        """Keep a call whose asker went away. Does not wait: neither does who is cancelled."""
        self._put_in_turn(request, CALLED_OFF)

    async def finished(self) -> bytes:
        """The whole record; calls in an order that does not depend on which came back first."""
        return await asyncio.to_thread(self._finish)

    def close(self) -> None:
        self._is_finished = True
        self._spool.close()

    async def _add(self, request: LLMRequest, said: Mapping[str, Any]) -> None:
        if _chars(request.messages) < _THREAD_FROM_CHARS and self._turn.acquire(blocking=False):
            try:
                self._put(request, said)
            finally:
                self._turn.release()
        else:
            await asyncio.to_thread(self._put_in_turn, request, said)

    def _put_in_turn(self, request: LLMRequest, said: Mapping[str, Any]) -> None:
        with self._turn:
            self._put(request, said)

    def _put(self, request: LLMRequest, said: Mapping[str, Any]) -> None:
        if self._is_finished:
            return  # what ends later belongs to no record
        if request.prompt is not None and request.prompt not in self._prompts:
            prompt = load_prompt(request.prompt.partition("@")[0])
            if prompt.ref == request.prompt:
                self._prompts[prompt.ref] = prompt.text
        if was_repaired(said):
            repair = load_prompt("repair")
            self._prompts[repair.ref] = repair.text
        if has_schema_in_words(said):
            words = load_prompt("schema_words")
            self._prompts[words.ref] = words.text
        schema = None if request.schema is None else schema_of(request.schema)
        if schema is not None:
            self._schemas.setdefault(*schema)
        asked = {
            "model": request.model,
            "purpose": request.purpose,
            "prompt": request.prompt,
            "vote": request.vote,
            "params": sent_params(request),
            "schema": schema and schema[0],
            "evidence": list(request.evidence),
            "messages": self._messages(request.messages),
        }
        page_chars = page_chars_of(said)
        if page_chars is not None:
            sent = self._messages(with_page_of(request, page_chars).messages)
            said = {**said, "shortened": {**said["shortened"], "messages": sent}}
        self._calls.append((asked, said))

    def _messages(self, messages: Sequence[Message]) -> list[Any]:
        """Messages with long texts and pictures named by hash."""
        return [{**message, "content": self._content(message.get("content"))} for message in messages]

    def _content(self, content: Any) -> Any:
        if isinstance(content, DataURI):
            return self._picture(content)
        if isinstance(content, str):
            return self._text(content)
        if isinstance(content, Mapping):
            return {key: self._content(value) for key, value in content.items()}
        if isinstance(content, list | tuple):
            return [self._content(each) for each in content]
        return content

    def _text(self, text: str) -> Any:
        """A short text as it is; of a long one its pieces in order: strings, and hashes of long pieces."""
        if len(text) < LONG_CHARS:
            return text
        # A page's text comes again with every claim and vote. Pictures are not remembered: they would take much memory.
        pieces = self._texts.get(text)
        if pieces is None:
            if len(self._texts) >= _MEMORY_OF_TEXTS:
                del self._texts[next(iter(self._texts))]
            pieces = self._texts[text] = self._pieces_of(text)
        return {"pieces": pieces}

    def _pieces_of(self, text: str) -> list[Any]:
        pieces: list[Any] = []
        for piece in _cut(text):
            if len(piece) >= LONG_CHARS:
                pieces.append({"sha256": self._keep(piece.encode("utf-8", "replace"), "text"), "chars": len(piece)})
            elif pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        return pieces

    def _picture(self, uri: DataURI) -> Any:
        media_type = uri[: uri.index(";")].removeprefix("data:")
        sha256 = self._pictures.get(uri.sha256)
        if sha256 is None and uri.picture_sha256 and self._kept(uri.picture_sha256):
            sha256 = self._pictures[uri.sha256] = uri.picture_sha256
        elif sha256 is None:
            data = base64.b64decode(uri.partition(";base64,")[2])
            sha256 = self._pictures[uri.sha256] = hashlib.sha256(data).hexdigest()
            if not self._kept(sha256):
                self._keep(data, media_type)
        return {"picture": sha256, "media_type": media_type}

    def _keep(self, data: bytes, kind: str) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._pieces and sha256 not in self._left_out:
            packed = zlib.compress(data, _QUICK) if kind == "text" else data
            at = self._spool.tell()
            if at + len(packed) > MAX_PIECES_BYTES:
                self._left_out.add(sha256)
            else:
                self._spool.write(packed)
                self._pieces[sha256] = {"kind": kind, "at": at, "bytes": len(packed)}
        return sha256

    def _finish(self) -> bytes:
        with self._turn:
            self._is_finished = True
        # By what was asked; of equal questions the first reply stays the first.
        calls = sorted(self._calls, key=lambda call: json.dumps(call[0], sort_keys=True, default=str))
        head = {
            "of": self._of,
            "prompts": self._prompts,
            "schemas": self._schemas,
            "pieces": self._pieces,
            "left_out": sorted(self._left_out),
            "calls": [{**asked, **said} for asked, said in calls],
        }
        text = json.dumps(head, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
        packed = zlib.compress(text.encode("utf-8", "replace"), _QUICK)
        self._spool.seek(0)
        return b"".join((MAGIC, HEAD.pack(len(packed)), packed, self._spool.read()))


class RecordingLLM:
    """A client whose calls are kept. One for each answer, over one that many share: ``aclose`` closes nothing."""

    def __init__(self, inner: LLMClient, recorder: CallRecorder) -> None:
        self._inner = inner
        self._recorder = recorder

    async def complete(self, request: LLMRequest) -> LLMReply:
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            await self._recorder.failed(request, error)
            raise
        except asyncio.CancelledError:
            if not request.kept_only:
                self._recorder.called_off(request)
            raise
        await self._recorder.replied(request, reply)
        return reply

    async def aclose(self) -> None:
        """The client behind belongs to somebody else."""


def _cut(text: str) -> list[str]:
    """A text in pieces: tags of blocks, and what stands between them. Joined they are the text."""
    pieces, at = [], 0
    for tag in _TAG.finditer(text):
        pieces += [text[at : tag.start()], tag[0]]
        at = tag.end()
    return [*pieces, text[at:]]


def _chars(messages: Sequence[Message]) -> int:
    """About how long messages are, pictures included."""
    total = 0
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list | tuple) else [content]
        for part in parts:
            total += len(part) if isinstance(part, str) else len(str(part.get("text", ""))) if part else 0
            if isinstance(part, Mapping) and "image_url" in part:
                total += _THREAD_FROM_CHARS
    return total


@lru_cache(maxsize=256)
def schema_of(schema: type[BaseModel]) -> tuple[str, Any]:
    """The hash and the JSON Schema of what a reply must be."""
    written = {"name": schema.__name__, "schema": schema.model_json_schema()}
    text = json.dumps(written, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), json.loads(text)
