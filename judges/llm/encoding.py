"""Serialization of requests: the JSON body, and the cache key.

Both handle images separately. A screenshot has about a megabyte of base64 that needs no escaping. Encoding and hashing
it again for every claim and vote on its page would cost more than everything else.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from judges.llm.client import LLMRequest, Message
from judges.llm.images import DataURI
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name

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
        text = json.dumps(_without_images(body, images), ensure_ascii=False, separators=(",", ":"))
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


def _without_images(value: Any, images: list[DataURI]) -> Any:
    if isinstance(value, DataURI):
        images.append(value)
        return _PLACEHOLDER
    if isinstance(value, Mapping):
        return {key: _without_images(item, images) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_images(item, images) for item in value]
    return value


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
    return [{"content": None, **_digest_content(message), "role": message.get("role")} for message in messages]


def _digest_content(content: Any) -> Any:
    if isinstance(content, DataURI):
        return content.sha256
    if isinstance(content, str):
        return _sha256(content)
    if isinstance(content, Mapping):
        return {key: _digest_content(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_digest_content(each) for each in content]
    return content


@lru_cache(maxsize=256)
def _schema_digest(schema: ReplyType) -> str:
    return _sha256(json.dumps([schema_name(schema), json_schema_of(schema)], sort_keys=True, default=str))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
