"""Serialization of requests: images as data URIs, the JSON body, and the cache key.

Body and key handle images separately. A screenshot has about a megabyte of base64 that needs no escaping. Encoding and
hashing it again for every claim and vote on its page would cost more than everything else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

from judges.llm.client import LLMRequest, Message
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name

_PLAIN = re.compile(r"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*")


_ENCODED_BYTES = 96 * 1024
"""Pictures are encoded in pieces of this size: a multiple of three, and small enough for memory that is reused."""


class DataURI(str):
    """``data:`` URI with its SHA-256 (hex), so that requests need not compute it again.

    ``picture_sha256`` is the hash of the image bytes, or "" if unknown. If it is known, ``sha256`` is derived from it,
    which avoids hashing a megabyte of base64.

    It can be used like any string. The encoded bytes are not stored: base64 is ASCII and needs no escaping in JSON, so
    that encoding it is fast, and storing it would double the memory.
    """

    __slots__ = ("picture_sha256", "sha256")

    sha256: str
    picture_sha256: str

    @classmethod
    def of_jpeg(cls, jpeg: bytes, *, sha256: str = "") -> Self:
        """Encode JPEG bytes; ``sha256`` is their hash if known. Call it in a thread: it takes milliseconds per MB."""
        pieces = (
            base64.b64encode(jpeg[start : start + _ENCODED_BYTES]).decode()
            for start in range(0, len(jpeg), _ENCODED_BYTES)
        )
        return cls._of("".join(["data:image/jpeg;base64,", *pieces]), picture_sha256=sha256)

    @classmethod
    def given(cls, uri: str) -> str:
        """Return ``uri`` as a ``DataURI`` if it is an image in plain base64. Call it in a thread.

        Any other URI stays an ordinary string, because it must be escaped in JSON.
        """
        return cls._of(uri) if _PLAIN.fullmatch(uri) else uri

    @classmethod
    def _of(cls, encoded: str, *, picture_sha256: str = "") -> Self:
        uri = cls(encoded)
        hashed = f"picture {picture_sha256}" if picture_sha256 else encoded
        uri.sha256 = hashlib.sha256(hashed.encode("ascii")).hexdigest()
        uri.picture_sha256 = picture_sha256
        return uri


def image_part(uri: str) -> dict[str, Any]:
    """Return the part of a chat message for an image."""
    return {"type": "image_url", "image_url": {"url": uri, "detail": "high"}}


def map_texts(content: Any, convert: Callable[[str], Any]) -> Any:
    """Return a JSON value, such as messages, with each string converted. Images are strings, too: ``DataURI``."""
    if isinstance(content, str):
        return convert(content)
    if isinstance(content, Mapping):
        return {key: map_texts(value, convert) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [map_texts(each, convert) for each in content]
    return content


KEY_VERSION = 2
"""Part of every key. Increase it when the inputs of the key change, so that older replies are not found."""

_IN_EVIDENCE = frozenset({"page", "page_links"})
"""Parts that the digests in ``evidence`` already cover."""

_PLACEHOLDER = f"image-{secrets.token_hex(16)}-"
"""Placeholder for an image during encoding. Random in each process, so that no page can contain it."""


_SENT_BYTES = 192 * 1024
"""Size of the pieces of an image that are sent. They are small enough for memory that is reused."""


class JsonBody:
    """JSON body of a request, in pieces. Requests with the same image share its encoded string.

    It can be iterated repeatedly. Images are converted to bytes while they are sent.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        images: list[DataURI] = []

        def without_image(text: str) -> str:
            if isinstance(text, DataURI):
                images.append(text)
                return _PLACEHOLDER
            return text

        text = json.dumps(map_texts(body, without_image), ensure_ascii=False, separators=(",", ":"))
        head, *rest = text.split(_PLACEHOLDER) if images else [text]
        self.pieces: list[bytes | DataURI] = [head.encode("utf-8", "replace")]
        for image, piece in zip(images, rest, strict=True):
            self.pieces += [image, piece.encode("utf-8", "replace")]

    def __len__(self) -> int:
        """Return the length in bytes."""
        return sum(map(len, self.pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                for start in range(0, len(piece), _SENT_BYTES):
                    yield piece[start : start + _SENT_BYTES].encode("ascii")


def request_key(request: LLMRequest, *, provider: str, endpoint: str, params: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of everything that determines a reply.

    ``params`` are the parameters to send: those of the request and of the model family. The key also covers the inputs
    that the messages were rendered from. It therefore changes if a page changes after the point where it was cut off,
    if a claim changes by an invisible character, or if the prompt version changes, even if the messages do not.
    """
    document = {
        "version": KEY_VERSION,
        "provider": provider,
        "endpoint": endpoint,
        "model": request.model,
        "messages": _digested(request.messages),
        "schema": None if request.schema is None else _schema_digest(request.schema),
        "params": {name: params[name] for name in sorted(params)},
        "vote": request.vote,
        "purpose": request.purpose,
        "prompt": request.prompt,
        "evidence": list(request.evidence),
        "parts": {name: _sha256(text) for name, text in sorted(request.parts.items()) if name not in _IN_EVIDENCE},
    }
    return _sha256(json.dumps(document, ensure_ascii=True, sort_keys=True, default=str))


def _digested(messages: Sequence[Message]) -> list[Any]:
    """Return the messages with each text and image replaced by its digest. Scripts may send further fields."""
    return [{"content": None, **map_texts(message, _digest), "role": message.get("role")} for message in messages]


def _digest(text: str) -> str:
    return text.sha256 if isinstance(text, DataURI) else _sha256(text)


@lru_cache(maxsize=256)
def _schema_digest(schema: ReplyType) -> str:
    return _sha256(json.dumps([schema_name(schema), json_schema_of(schema)], sort_keys=True, default=str))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
