"""Requests as bytes: the JSON body that is sent, and the key under which its reply is stored.

Both treat pictures apart. A screenshot is a megabyte that escapes to itself: running it through the JSON
encoder and the hash again for every claim and vote on its page would cost more than all the rest.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from judges.llm.client import LLMRequest, Message
from judges.llm.images import DataURI

KEY_VERSION = 2
"""Part of every key: a change in what goes into it must not find replies stored before."""

_IN_EVIDENCE = frozenset({"page", "page_links"})
"""Parts that the digests of the evidence stand for already."""

_PLACE = f"image-{secrets.token_hex(16)}-"
"""Stands in for a picture while the rest is encoded. Drawn anew in every process, so no page can contain it."""


class JsonBody:
    """A request body in pieces: a picture is the one string it was encoded to, however many requests hold it.

    May be iterated as often as one likes: bytes exist only of the piece that is being sent.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        images: list[DataURI] = []
        text = json.dumps(_without_images(body, images), ensure_ascii=False, separators=(",", ":"))
        head, *rest = text.split(_PLACE) if images else [text]
        self.pieces: list[bytes | DataURI] = [head.encode("utf-8", "replace")]
        for image, piece in zip(images, rest, strict=True):
            self.pieces += [image, piece.encode("utf-8", "replace")]

    def __len__(self) -> int:
        """In bytes."""
        return sum(map(len, self.pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece if isinstance(piece, bytes) else piece.encode("ascii")


def _without_images(value: Any, images: list[DataURI]) -> Any:
    if isinstance(value, DataURI):
        images.append(value)
        return _PLACE
    if isinstance(value, Mapping):
        return {key: _without_images(item, images) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_images(item, images) for item in value]
    return value


def request_key(request: LLMRequest, *, provider: str, endpoint: str, params: Mapping[str, Any]) -> str:
    """The SHA-256 (hex) of everything that decides a reply: equal keys, equal requests.

    ``params`` are those that are sent: the request's own and its family's. What a request was made from counts beside
    what is sent: a page that changed where it had to be cut, a claim that changed by a character nobody sees, a prompt
    of another version are other questions, even where the model would be shown the same bytes.
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
    """Messages with each text and picture replaced by its digest."""
    return [{"role": message.get("role"), "content": _digest_content(message.get("content"))} for message in messages]


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
def _schema_digest(schema: type[BaseModel]) -> str:
    return _sha256(json.dumps([schema.__name__, schema.model_json_schema()], sort_keys=True, default=str))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
