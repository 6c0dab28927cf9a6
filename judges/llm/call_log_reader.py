"""Reader for call logs, and keys that identify equal requests across installations.

Requests of two installations differ only in the nonces in block tags. The keys are therefore computed without nonces.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.llm.call_recording import HEAD, MAGIC, schema_of
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI
from judges.llm.remote import sent_params

MAX_HEAD_BYTES = 512 * 1024 * 1024
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
        place = self._places[sha256]
        packed = self._body[place["at"] : place["at"] + place["bytes"]]
        data = zlib.decompress(packed) if place["kind"] == "text" else bytes(packed)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CallLogUnreadable(f"piece {sha256[:12]} does not have its hash")
        return Piece(sha256=sha256, kind=place["kind"], data=data)


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
        unpacker = zlib.decompressobj()
        head = json.loads(unpacker.decompress(record[begin : begin + length], MAX_HEAD_BYTES))
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
    messages = [_digested(message) for message in request.messages]
    return _key(request.model, request.vote, sent_params(request), schema, messages)


def recorded_request_key(call: Mapping[str, Any], text_of: Callable[[str], str]) -> str:
    """Return the key of a recorded call. ``text_of`` returns a long text by its hash."""
    messages = [_digested_record(message, text_of) for message in call["messages"]]
    return _key(call["model"], call["vote"], call["params"], call["schema"], messages)


def _key(model: Any, vote: Any, params: Any, schema: Any, messages: Sequence[Any]) -> str:
    document = {"model": model, "vote": vote, "params": params, "schema": schema, "messages": messages}
    written = json.loads(json.dumps(document, default=str))
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()


def _digested(content: Any) -> Any:
    if isinstance(content, DataURI):
        data = base64.b64decode(content.partition(";base64,")[2])
        return {"picture": hashlib.sha256(data).hexdigest()}
    if isinstance(content, str):
        return _digest_of(content)
    if isinstance(content, Mapping):
        return {key: _digested(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_digested(each) for each in content]
    return content


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


def _digest_of(text: str) -> str:
    return hashlib.sha256(_NONCE.sub(r"\1>", text).encode("utf-8", "replace")).hexdigest()
