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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.isolation.rpc_framing import max_values
from judges.llm.call_recording import HEAD, MAGIC, schema_of
from judges.llm.client import LLMRequest
from judges.llm.images import DataURI
from judges.llm.remote import sent_params
from judges.prompting.blocks import read_blocks

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
