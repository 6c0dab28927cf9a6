"""Body of a chat completion request in the request format of a server, its serialization, and the cache key.

Images are encoded and hashed separately. A screenshot has about a megabyte of base64 that needs no escaping. Encoding
and hashing it again for every claim and vote on its page would cost more than everything else.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from openai.lib._pydantic import _ensure_strict_json_schema

from judges.errors import JudgeBug
from judges.llm.client import LLMRequest, Message
from judges.llm.images import DataURI
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.request_formats import RequestFormat, RequestParts, SchemaMode
from judges.prompting.prompts import load_prompt


def chat_body(request: LLMRequest, params: Mapping[str, Any], request_format: RequestFormat) -> dict[str, Any]:
    messages = list((request if request_format.shows_images else without_images(request)).messages)
    if request.schema is not None and request_format.schema_in_words:
        messages = _with_schema_in_words(messages, _words(request.schema))
    if request_format.one_message:
        messages = _one_user_message(messages)
    messages = [{**message, "content": _content_as_string(message.get("content"))} for message in messages]
    metadata = {"metadata": dict(request.metadata)} if request.metadata else {}
    parameters = request_format.parameters({**params, **metadata})
    body: dict[str, Any] = {"model": request.model, "messages": messages, **parameters}
    if request.schema is not None:
        body |= _structure(request.schema, request_format.schema_mode)
    return body


def request_parts(
    request: LLMRequest, body: Mapping[str, Any], request_format: RequestFormat, *, may_drop_images: bool
) -> RequestParts:
    """Return the parts of ``body`` that a server may reject."""
    return RequestParts(
        params=[name for name in body if name not in ("model", "messages", "response_format", "tools", "tool_choice")],
        has_schema=request.schema is not None,
        has_images=request_format.shows_images and has_images(request),
        has_system=len(body["messages"]) > 1 or any(message["role"] != "user" for message in body["messages"]),
        may_drop_images=may_drop_images,
    )


def has_images(request: LLMRequest) -> bool:
    """Return whether any message contains an image."""
    contents = [message.get("content") for message in request.messages]
    return any(_is_image(part) for content in contents if not isinstance(content, str) for part in content or ())


def without_images(request: LLMRequest) -> LLMRequest:
    messages = tuple({**message, "content": _without_images(message.get("content"))} for message in request.messages)
    return replace(request, messages=messages)


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and "image_url" in part


def _structure(schema: ReplyType, schema_mode: SchemaMode) -> dict[str, Any]:
    strict = response_format(schema)
    described = strict["json_schema"]
    plain = {"name": described["name"], "schema": described["schema"]}
    if schema_mode is SchemaMode.STRICT:
        return {"response_format": strict}
    if schema_mode is SchemaMode.SCHEMA:
        return {"response_format": {"type": "json_schema", "json_schema": plain}}
    if schema_mode is SchemaMode.OBJECT:
        return {"response_format": {"type": "json_object"}}
    if schema_mode is SchemaMode.PROMPT:
        return {}
    function = {"name": plain["name"], "description": "Give your reply.", "parameters": plain["schema"]}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": plain["name"]}},
    }


def _words(schema: ReplyType) -> str:
    described = response_format(schema)["json_schema"]["schema"]
    return load_prompt("schema_words").render(schema=json.dumps(described, ensure_ascii=False))


def _with_schema_in_words(messages: Sequence[Message], words: str) -> list[Message]:
    """Append the schema to the last message, because a provider's prompt cache needs equal starts of requests."""
    *before, last = messages
    content = last.get("content")
    if isinstance(content, str):
        return [*before, {**last, "content": f"{content}\n\n{words}"}]
    return [*before, {**last, "content": [*(content or ()), {"type": "text", "text": words}]}]


def _one_user_message(messages: Sequence[Message]) -> list[Message]:
    """Join all messages into one user message, images first. Messages that contain a reply are not joined."""
    if any(message["role"] == "assistant" for message in messages):
        return list(messages)
    parts = [part for message in messages for part in _parts(message.get("content"))]
    return [{"role": "user", "content": sorted(parts, key=lambda part: not _is_image(part))}]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _without_images(content: Any) -> Any:
    return [part for part in content if not _is_image(part)] if isinstance(content, list | tuple) else content


def _content_as_string(content: Any) -> Any:
    """Return text parts as one string, because not every server accepts parts."""
    if isinstance(content, str) or not content:
        return content
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "\n\n".join(texts) if all(isinstance(text, str) for text in texts) else content


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@lru_cache(maxsize=256)
def response_format(schema: ReplyType) -> dict[str, Any]:
    """Return the ``response_format`` parameter of a chat completion.

    The schema is strict if the provider can enforce it. A schema with arbitrary keys (``dict[str, int]``) cannot be
    strict. Replies are validated in both cases.

    Raises:
        JudgeBug: the schema has an invalid reference, or is nested too deeply.
    """
    name = schema_name(schema)
    try:
        plain = copy.deepcopy(dict(json_schema_of(schema)))
        if _has_free_keys(plain):
            return _json_schema(name, plain, strict=False)
        # The public functions of the SDK accept only a class.
        return _json_schema(name, _ensure_strict_json_schema(plain, path=(), root=plain), strict=True)
    except (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise JudgeBug(f"the schema of {name} is invalid: {type(error).__name__}: {error}") from error


def _json_schema(name: str, schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": _NOT_IN_NAMES.sub("_", name)[:64], "schema": schema, "strict": strict},
    }


def _has_free_keys(schema: Any) -> bool:
    """Return whether an object in a JSON schema accepts keys that it does not name."""
    if isinstance(schema, list):
        return any(_has_free_keys(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    is_open_object = schema.get("type") == "object" and "properties" not in schema
    return is_open_object or bool(schema.get("additionalProperties")) or any(map(_has_free_keys, schema.values()))


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
        text = json.dumps(_with_placeholders(body, images), ensure_ascii=False, separators=(",", ":"))
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


def _with_placeholders(value: Any, images: list[DataURI]) -> Any:
    if isinstance(value, DataURI):
        images.append(value)
        return _PLACEHOLDER
    if isinstance(value, Mapping):
        return {key: _with_placeholders(item, images) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_placeholders(item, images) for item in value]
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
