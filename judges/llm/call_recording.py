"""Call log: the model requests of one answer with their replies or faults, for display and replay. Writer and reader.

A call log is one body: a JSON head, followed by the long texts and images. Each of these pieces is stored once, even if
many requests contain it. Texts are split at block tags, so that a page shown with fifty claims is one piece.

    ASSAYCALLS1
  8 bytes: length of the head  head (zlib)  concatenated pieces

The calls are added to the call log of the answer for which the client is used.

Requests of two installations differ only in the nonces in block tags. The keys that identify equal requests across
installations are therefore computed without nonces.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from judges.errors import LLMError, ShorterPage, UnusableReply
from judges.isolation.serialization import max_values
from judges.llm.client import LLMReply, LLMRequest, Message
from judges.llm.encoding import DataURI, map_texts
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.observed import RequestObserver
from judges.llm.remote import sent_params, with_shortened_page
from judges.llm.request_formats import SCHEMA_IN_WORDS
from judges.prompting.blocks import read_blocks
from judges.prompting.prompts import load_prompt

MAGIC: Final = b"ASSAYCALLS1\n"
HEAD: Final = struct.Struct(">Q")
LONG_CHARS: Final = 1024
"""Texts of at least this length are stored as pieces."""
MAX_PIECES_BYTES: Final = 128 * 1024 * 1024
"""Limit per call log. Of further pieces only the hash is stored, in ``left_out``."""

_IN_MEMORY_BYTES = 512 * 1024
_THREAD_FROM_CHARS = 64 * 1024
_MAX_CACHED_TEXTS = 16
_FASTEST_LEVEL = 1
_TAG = re.compile(r"</?[a-z_]+ [0-9a-f]{32}>")


class CallRecorder(RequestObserver):
    """Observer that writes the call log of one answer. Call ``close`` when done; an unfinished log is discarded.

    ``of`` is the id of the result. It makes each log unique, so that it can be deleted with its result. ``kept``
    returns whether an image with a hash is already stored elsewhere. ``mask`` redacts secrets in error messages.
    """

    def __init__(
        self,
        of: str | None,
        *,
        kept: Callable[[str], bool],
        mask: Mask,
    ) -> None:
        self._of = of
        self._is_stored_elsewhere = kept
        self._mask = mask
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by close()
        self._pieces: dict[str, dict[str, Any]] = {}
        self._left_out: set[str] = set()
        self._image_hashes: dict[str, str] = {}
        self._texts: dict[bytes, list[Any]] = {}
        self._prompts: dict[str, str] = {}
        self._schemas: dict[str, Any] = {}
        self._calls: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
        # Clients that a script creates may run in another thread with another event loop.
        self._lock = Lock()
        self._is_finished = False
        self._failure: OSError | None = None

    @property
    def calls(self) -> int:
        """Return the number of finished calls."""
        return len(self._calls)

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        await self._add(request, reply_outcome(reply, self._mask))

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        await self._add(request, fault_outcome(error, self._mask))

    def cancelled(self, request: LLMRequest) -> None:
        if not request.cache_only:
            self._put_locked(request, CANCELLED_OUTCOME)

    async def finish(self) -> bytes:
        """Return the call log. The order of the calls does not depend on which finished first.

        Raises:
            OSError: a call could not be written to the temporary file.
        """
        return await asyncio.to_thread(self._finish)

    def close(self) -> None:
        """Discard what was recorded. Open connections keep the context in which they were made, with its recorder."""
        self._is_finished = True
        with suppress(OSError):  # of a full disk, for what was not written yet
            self._spool.close()
        self._is_stored_elsewhere = lambda sha256: False
        for recorded in (self._calls, self._pieces, self._texts, self._image_hashes, self._schemas, self._prompts):
            recorded.clear()

    async def _add(self, request: LLMRequest, outcome: Mapping[str, Any]) -> None:
        if self._chars(request.messages) < _THREAD_FROM_CHARS and self._lock.acquire(blocking=False):
            try:
                self._put(request, outcome)
            finally:
                self._lock.release()
        else:
            await asyncio.to_thread(self._put_locked, request, outcome)

    def _chars(self, messages: Sequence[Message]) -> int:
        """Return the approximate length of messages, including images that must be stored or hashed."""
        total = 0
        for message in messages:
            content = message.get("content")
            parts = content if isinstance(content, list | tuple) else [content]
            for part in parts:
                total += len(part) if isinstance(part, str) else len(str(part.get("text", ""))) if part else 0
                if isinstance(part, Mapping) and "image_url" in part and not self._is_known(part["image_url"]["url"]):
                    total += _THREAD_FROM_CHARS
        return total

    def _is_known(self, uri: str) -> bool:
        if not isinstance(uri, DataURI) or not uri.picture_sha256:
            return False
        return uri.sha256 in self._image_hashes or self._is_stored_elsewhere(uri.picture_sha256)

    def _put_locked(self, request: LLMRequest, outcome: Mapping[str, Any]) -> None:
        with self._lock:
            self._put(request, outcome)

    def _put(self, request: LLMRequest, outcome: Mapping[str, Any]) -> None:
        """Record a call. A full disk ends the log and not the request, whose reply may have been paid for."""
        if self._is_finished:
            return  # the log is complete; calls that end later are dropped
        try:
            self._record(request, outcome)
        except OSError as error:
            self._is_finished, self._failure = True, error

    def _record(self, request: LLMRequest, outcome: Mapping[str, Any]) -> None:
        if request.prompt is not None and request.prompt not in self._prompts:
            prompt = load_prompt(request.prompt.partition("@")[0])
            if prompt.ref == request.prompt:
                self._prompts[prompt.ref] = prompt.text
        if was_repaired(outcome):
            repair = load_prompt("repair")
            self._prompts[repair.ref] = repair.text
        if has_schema_in_words(outcome):
            words = load_prompt("schema_words")
            self._prompts[words.ref] = words.text
        schema = None if request.schema is None else schema_of(request.schema)
        if schema is not None:
            self._schemas.setdefault(*schema)
        request_fields = {
            "model": request.model,
            "purpose": request.purpose,
            "prompt": request.prompt,
            "vote": request.vote,
            "params": sent_params(request),
            "schema": schema and schema[0],
            "evidence": list(request.evidence),
            "messages": self._messages(request.messages),
        }
        page_chars = page_chars_of(outcome)
        if page_chars is not None:
            sent = self._messages(with_shortened_page(request, page_chars).messages)
            outcome = {**outcome, "shortened": {**outcome["shortened"], "messages": sent}}
        self._calls.append((request_fields, outcome))

    def _messages(self, messages: Sequence[Message]) -> list[Any]:
        """Return the messages with long texts and images replaced by their hashes."""
        return [{**message, "content": map_texts(message.get("content"), self._text_or_image)} for message in messages]

    def _text_or_image(self, text: str) -> Any:
        return self._image(text) if isinstance(text, DataURI) else self._text(text)

    def _text(self, text: str) -> Any:
        """Return a short text unchanged. For a long text, return its pieces: strings, and hashes of long pieces."""
        if len(text) < LONG_CHARS:
            return text
        # Every vote on a claim repeats its text. Digests, because texts of many pages would fill the memory.
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        pieces = self._texts.get(digest)
        if pieces is None:
            if len(self._texts) >= _MAX_CACHED_TEXTS:
                del self._texts[next(iter(self._texts))]
            pieces = self._texts[digest] = self._pieces_of(text)
        return {"pieces": pieces}

    def _pieces_of(self, text: str) -> list[Any]:
        pieces: list[Any] = []
        for piece in _cut(text):
            if len(piece) >= LONG_CHARS:
                pieces.append(
                    {"sha256": self._store_piece(piece.encode("utf-8", "replace"), "text"), "chars": len(piece)}
                )
            elif pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        return pieces

    def _image(self, uri: DataURI) -> Any:
        media_type = uri[: uri.index(";")].removeprefix("data:")
        sha256 = self._image_hashes.get(uri.sha256)
        if sha256 is None and uri.picture_sha256 and self._is_stored_elsewhere(uri.picture_sha256):
            sha256 = self._image_hashes[uri.sha256] = uri.picture_sha256
        elif sha256 is None:
            data = base64.b64decode(uri.partition(";base64,")[2])
            sha256 = self._image_hashes[uri.sha256] = hashlib.sha256(data).hexdigest()
            if not self._is_stored_elsewhere(sha256):
                self._store_piece(data, media_type)
        return {"picture": sha256, "media_type": media_type}

    def _store_piece(self, data: bytes, kind: str) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._pieces and sha256 not in self._left_out:
            packed = zlib.compress(data, _FASTEST_LEVEL) if kind == "text" else data
            at = self._spool.tell()
            if at + len(packed) > MAX_PIECES_BYTES:
                self._left_out.add(sha256)
            else:
                self._spool.write(packed)
                self._pieces[sha256] = {"kind": kind, "at": at, "bytes": len(packed)}
        return sha256

    def _finish(self) -> bytes:
        with self._lock:
            self._is_finished = True
        if self._failure is not None:
            raise self._failure
        # Sorted by request. The sort is stable, so the first reply to equal requests stays first.
        calls = sorted(self._calls, key=lambda call: json.dumps(call[0], sort_keys=True, default=str))
        head = {
            "of": self._of,
            "prompts": self._prompts,
            "schemas": self._schemas,
            "pieces": self._pieces,
            "left_out": sorted(self._left_out),
            "calls": [{**request_fields, **outcome} for request_fields, outcome in calls],
        }
        text = json.dumps(head, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
        packed = zlib.compress(text.encode("utf-8", "replace"), _FASTEST_LEVEL)
        self._spool.seek(0)
        return b"".join((MAGIC, HEAD.pack(len(packed)), packed, self._spool.read()))


def _cut(text: str) -> list[str]:
    """Split a text into block tags and the texts between them. Joined, the pieces are the text again."""
    pieces, at = [], 0
    for tag in _TAG.finditer(text):
        pieces += [text[at : tag.start()], tag[0]]
        at = tag.end()
    return [*pieces, text[at:]]


@lru_cache(maxsize=256)
def schema_of(schema: ReplyType) -> tuple[str, Any]:
    """Return the hash and the JSON schema of a reply class."""
    written = {"name": schema_name(schema), "schema": json_schema_of(schema)}
    return schema_sha256(written), json.loads(_schema_text(written))


def schema_sha256(schema: Any) -> str:
    """Return the hash that identifies a JSON schema in call logs."""
    return hashlib.sha256(_schema_text(schema).encode("utf-8", "surrogatepass")).hexdigest()


def _schema_text(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True, default=str)


_active_recorder: ContextVar[CallRecorder | None] = ContextVar("active_recorder", default=None)


@contextmanager
def recording_calls(recorder: CallRecorder) -> Iterator[None]:
    """Record the calls of clients with an ``ActiveRecorder`` inside this context, including the tasks started in it."""
    token = _active_recorder.set(recorder)
    try:
        yield
    finally:
        _active_recorder.reset(token)


class ActiveRecorder(RequestObserver):
    """Request observer that forwards to the recorder of the context in which the request is sent, if any."""

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        if (recorder := _active_recorder.get()) is not None:
            await recorder.replied(request, reply, seconds)

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        if (recorder := _active_recorder.get()) is not None:
            await recorder.failed(request, error)

    def cancelled(self, request: LLMRequest) -> None:
        if (recorder := _active_recorder.get()) is not None:
            recorder.cancelled(request)


CANCELLED_OUTCOME: Final[Mapping[str, Any]] = {"called_off": True}
"""Outcome of a cancelled call. It may or may not have been sent."""

Mask = Callable[[str], str]
"""Redacts secrets in error messages of providers."""


def reply_outcome(reply: LLMReply, mask: Mask) -> dict[str, Any]:
    """Return the outcome of a call with a usable reply."""
    text = reply.text
    if not text and reply.parsed is not None:
        text = reply.parsed.model_dump_json(by_alias=True)
    outcome = {"reply": text, "by": reply.model, "usage": asdict(reply.usage), "cached": reply.cached}
    counted = {"reply": text, "by": reply.model}
    if reply.text_only:
        outcome["text_only"] = True
    if reply.request_format:
        outcome["form"] = reply.request_format
    return outcome | _optional_keys(reply.unusable, reply.shorter_page, reply.retried, counted, mask)


def fault_outcome(error: LLMError, mask: Mask) -> dict[str, Any]:
    """Return the outcome of a call without a usable reply, or whose reply does not count."""
    fault = {"error": type(error).__name__, "reason": error.reason, "message": mask(str(error))}
    shorter = error.shorter_page
    counted = {} if shorter is None or shorter.text is None else {"reply": shorter.text, "by": shorter.model}
    outcome = {"fault": fault, "usage": asdict(error.usage)}
    return outcome | _optional_keys(error.unusable, shorter, error.retried, counted, mask)


def page_chars_of(outcome: Mapping[str, Any]) -> int | None:
    """Return the number of characters to which the page was shortened; None if it was not."""
    shorter = outcome.get("shortened")
    return None if shorter is None else int(shorter["page_chars"])


def was_repaired(outcome: Mapping[str, Any]) -> bool:
    """Return whether a repair request was sent."""
    requests = (outcome, outcome.get("shortened", {}))
    return any(each["then"] for part in requests for each in part.get("unusable", ()))


def has_schema_in_words(outcome: Mapping[str, Any]) -> bool:
    """Return whether a request of the call contained its schema in words (the prompt ``schema_words``)."""
    requests = (outcome, outcome.get("shortened", {}))
    forms = [part.get(name, "") for part in requests for name in ("form", "refused_form")]
    forms += [each.get("form", "") for part in requests for each in part.get("unusable", ())]
    return any(SCHEMA_IN_WORDS in form for form in forms)


def _optional_keys(
    unusable: Sequence[UnusableReply],
    shorter: ShorterPage | None,
    retried: Sequence[str],
    last: Mapping[str, Any],
    mask: Mask,
) -> dict[str, Any]:
    """Return the optional keys: failed attempts, unusable replies, and the shortened page.

    ``last`` is the reply to the shortened page. Unusable replies are listed with the request that they belong to.
    """
    keys: dict[str, Any] = {"retried": [mask(each) for each in retried]} if retried else {}
    if shorter is None:
        return keys | _unusable(unusable, mask)
    second = {"refusal": mask(shorter.refusal), "page_chars": shorter.page_chars, **last}
    if shorter.request_format:
        second["refused_form"] = shorter.request_format
    return keys | _unusable(shorter.unusable, mask) | {"shortened": second | _unusable(unusable, mask)}


def _unusable(unusable: Sequence[UnusableReply], mask: Mask) -> dict[str, Any]:
    """Return the unusable replies of a call, each with the messages that were added to the request after it."""
    if not unusable:
        return {}
    return {
        "unusable": [
            {
                "kind": each.kind.value,
                "reply": each.text,
                "detail": mask(each.detail),
                "by": each.model,
                "usage": asdict(each.usage),
                "then": [dict(message) for message in each.then],
            }
            | ({"form": each.request_format} if each.request_format else {})
            for each in unusable
        ]
    }


MAX_HEAD_BYTES = 512 * 1024 * 1024
MAX_HEAD_VALUES = 5_000_000
MAX_PIECE_BYTES = 256 * 1024 * 1024
_NONCE = re.compile(r"(</?[a-z_]+) [0-9a-f]{32}>")


class CallLogUnreadable(Exception):
    """The call log cannot be read. The message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Long text or image that messages refer to by hash. ``kind`` is ``text`` or the media type of the image."""

    sha256: str
    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ParsedCallLog:
    """Parsed call log. ``calls`` are JSON values; ``left_out`` contains the hashes of pieces above the size limit."""

    calls: tuple[dict[str, Any], ...]
    prompts: Mapping[str, str]
    schemas: Mapping[str, Any]
    left_out: tuple[str, ...]
    pieces: tuple[str, ...]
    _places: Mapping[str, Any]
    _body: memoryview

    def piece(self, sha256: str) -> Piece:
        """Return one long text or image.

        Raises:
            CallLogUnreadable: the content does not match its hash.
        """
        try:
            place = self._places[sha256]
            packed = self._body[place["at"] : place["at"] + place["bytes"]]
            data = _decompressed(packed, MAX_PIECE_BYTES) if place["kind"] == "text" else bytes(packed)
        except (LookupError, TypeError, zlib.error) as error:
            raise CallLogUnreadable(f"piece {sha256[:12]} is damaged: {error}") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CallLogUnreadable(f"piece {sha256[:12]} does not have its hash")
        return Piece(sha256=sha256, kind=place["kind"], data=data)


def _decompressed(data: memoryview | bytes, max_bytes: int) -> bytes:
    """Return the decompressed data. Raises CallLogUnreadable if it has more than ``max_bytes`` bytes."""
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(data, max_bytes)
    if unpacker.unconsumed_tail:
        raise CallLogUnreadable(f"a part of it has more than {max_bytes} bytes")
    return unpacked


def read_calls(record: bytes) -> ParsedCallLog:
    """Parse a call log that was read from the content store, which verifies its hash.

    Raises:
        CallLogUnreadable: the data is no call log, is damaged, or has another version.
    """
    if not record.startswith(MAGIC):
        raise CallLogUnreadable("it is not a call log of a version that this release can read")
    try:
        (length,) = HEAD.unpack_from(record, len(MAGIC))
        begin = len(MAGIC) + HEAD.size
        written = _decompressed(record[begin : begin + length], MAX_HEAD_BYTES)
        if max_values(written) > MAX_HEAD_VALUES:
            raise CallLogUnreadable(f"it has more than {MAX_HEAD_VALUES} values")
        head = json.loads(written)
        return ParsedCallLog(
            tuple(head["calls"]),
            head["prompts"],
            head["schemas"],
            tuple(head["left_out"]),
            tuple(sorted(head["pieces"])),
            head["pieces"],
            memoryview(record)[begin + length :],
        )
    except (ValueError, LookupError, TypeError, zlib.error, struct.error) as error:
        raise CallLogUnreadable(f"it is damaged: {error}") from error


def portable_request_key(request: LLMRequest) -> str:
    """Return the key of a request, which is the same in all installations."""
    schema = None if request.schema is None else schema_of(request.schema)[0]
    messages = map_texts(request.messages, _digested)
    return _key(request.model, request.vote, sent_params(request), schema, messages)


def recorded_request_key(call: Mapping[str, Any], text_of: Callable[[str], str]) -> str:
    """Return the key of a recorded call. ``text_of`` returns a long text by its hash."""
    messages = [_digested_record(message, text_of) for message in call["messages"]]
    return _key(call["model"], call["vote"], call["params"], call["schema"], messages)


def _key(model: Any, vote: Any, params: Any, schema: Any, messages: Sequence[Any]) -> str:
    document = {"model": model, "vote": vote, "params": params, "schema": schema, "messages": messages}
    written = json.loads(json.dumps(document, default=str))
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _digested(text: str) -> Any:
    if isinstance(text, DataURI):
        data = base64.b64decode(text.partition(";base64,")[2])
        return {"picture": hashlib.sha256(data).hexdigest()}
    return _digest_of(text)


def _digested_record(content: Any, text_of: Callable[[str], str]) -> Any:
    if isinstance(content, str):
        return _digest_of(content)
    if isinstance(content, Mapping):
        if "pieces" in content:
            return _digest_of(join_pieces(content, text_of))
        if "picture" in content:
            return {"picture": content["picture"]}
        return {key: _digested_record(value, text_of) for key, value in content.items()}
    if isinstance(content, list):
        return [_digested_record(each, text_of) for each in content]
    return content


def join_pieces(content: Mapping[str, Any], text_of: Callable[[str], str]) -> str:
    """Join a long text from its pieces."""
    return "".join(piece if isinstance(piece, str) else text_of(piece["sha256"]) for piece in content["pieces"])


def recorded_blocks(call: Mapping[str, Any], text_of: Callable[[str], str], label: str) -> Iterator[str]:
    """Yield the contents of the blocks with a label in the messages of a recorded call.

    ``text_of`` returns a long text by its hash.
    """
    for message in call["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"text": content}]:
            text = part.get("text")
            if isinstance(text, Mapping):
                text = join_pieces(text, text_of)
            if isinstance(text, str):
                yield from (content for found, content in read_blocks(text) if found == label)


def _digest_of(text: str) -> str:
    return hashlib.sha256(_NONCE.sub(r"\1>", text).encode("utf-8", "replace")).hexdigest()
