"""Provider adapter for OpenAI, Azure OpenAI and servers with a compatible chat completions API.

The retries of the SDK are off, so that each call is one attempt and counted once. The reply is parsed here,
because some servers send something else than a chat completion with status 200. That is an unusable reply and not an
exception of the SDK.

The reply may be a string, a list of parts, a tool call, a legacy function call or part of the reasoning. Some servers
stream it although the request does not ask for a stream. The parser converts all of these to the text of a
``RawReply``.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import quote, urlsplit

import aiohttp
import httpx2
import openai
from openai.lib._pydantic import _ensure_strict_json_schema

from cache.backends.inflating import ACCEPT_ENCODING
from cache.urls import is_loopback
from judges.errors import JudgeBug, LLMError, LLMRejected, LLMUnavailable
from judges.llm.client import LLMRequest, Message, has_images, is_image, without_images
from judges.llm.encoding import JsonBody
from judges.llm.error_mapping import (
    ErrorResponse,
    ErrorReturned,
    connection_error,
    error_for_response,
    images_rejected,
    parse_error_body,
    read_error,
    timeout_error,
)
from judges.llm.json_schema import ReplyType, json_schema_of, schema_name
from judges.llm.learned_formats import Images, LearnedFormats
from judges.llm.provider_adapter import (
    MAX_BROKEN_CHARS,
    Access,
    FinishReason,
    RawReply,
    ReplyTooLarge,
    broken_reply,
    is_secret,
    limit_reply,
)
from judges.llm.request_formats import (
    RequestFormat,
    RequestParts,
    SchemaMode,
    adapt_format,
    is_ambiguous,
    next_untried_format,
    says_no_images,
)
from judges.prompting.prompts import load_prompt

OPENAI_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"
"""Key for self-hosted servers that need none, because the SDK requires one."""
MAX_FORMATS = 12
"""Maximum number of formats that one request tries."""
_TOO_LARGE = 413
_OVERSIZED_SHARE = 0.9
"""A body of at least this share of a rejected size is treated as too large."""
_CONNECTION_ERRORS = (openai.APIConnectionError, aiohttp.ClientError, UnicodeError)
"""Errors of a request without a response. The SDK does not convert those of aiohttp for a response that is not HTTP,
and of Python for an invalid host name."""
_REPLY_LOST = (
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientPayloadError,
    aiohttp.http_exceptions.PayloadEncodingError,
    ConnectionResetError,
)
"""Errors of a connection that ended after the request was sent."""
_DEFAULT_ERROR_STATUS = 500
"""Status to assume for an error that was sent with status 200."""


def open_openai(access: Access) -> OpenAIAdapter:
    """Return the adapter for OpenAI, or for the compatible server at ``openai_base_url``."""
    endpoint = (access.openai_base_url or OPENAI_BASE_URL).rstrip("/")
    client = openai.AsyncOpenAI(
        api_key=access.openai_api_key or NO_KEY, base_url=endpoint, **_client_options(endpoint, access)
    )
    return OpenAIAdapter(client, access, provider="openai", endpoint=endpoint)


def open_azure(access: Access) -> OpenAIAdapter:
    """Return the adapter for Azure OpenAI. The model name is the deployment in the URL path."""
    endpoint = str(access.azure_endpoint).rstrip("/")
    client = openai.AsyncAzureOpenAI(
        api_key=access.azure_api_key,
        base_url=f"{endpoint}/openai",
        api_version=access.azure_api_version,
        **_client_options(endpoint, access),
    )
    return OpenAIAdapter(
        client, access, provider="azure", endpoint=endpoint, path="/deployments/{model}/chat/completions"
    )


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of all clients of this process. Reading the CA certificates is slow."""
    return httpx2.create_ssl_context()


def _client_options(endpoint: str, access: Access) -> dict[str, Any]:
    """Return the options of the SDK's client. A proxy of the environment is not used for this machine."""
    is_local = is_loopback(urlsplit(endpoint).hostname or "")
    return {
        "max_retries": 0,
        "timeout": openai.Timeout(None, connect=access.connect_timeout_s),
        "http_client": openai.DefaultAioHttpClient(
            verify=tls_context(),
            trust_env=not is_local,
            headers={"Accept-Encoding": ACCEPT_ENCODING},
            event_hooks={"response": [limit_reply(access.max_reply_bytes), _set_encoding]},
        ),
    }


async def _set_encoding(response: httpx2.Response) -> None:
    """Read the body as UTF-8, the encoding of JSON. With the declared charset, Python may raise any exception."""
    response.encoding = "utf-8"


class OpenAIAdapter:
    """Adapter for one account at one endpoint. ``path`` is relative to the base URL and may contain ``{model}``.

    Without ``Access.explores``, another format is tried only if the server names a part of the format that it rejects,
    and parameters are never left out: a request that asks for them must not be answered without them.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        access: Access,
        *,
        provider: str,
        endpoint: str,
        path: str = "/chat/completions",
    ) -> None:
        self.provider = provider
        self.endpoint = endpoint
        self.learned_formats = LearnedFormats(endpoint, images=access.images, file=access.format_file)
        self._explores = access.explores
        self._client = client
        self._path = path
        self._encoding_lock = asyncio.Lock()
        self._rejected_bytes: dict[str, int] = {}
        """By model: the smallest size of a body with images that was rejected as too large."""

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        """Send a request. If the server rejects its format, try other formats; these errors are not faults."""
        request_format = self.learned_formats.format_for(request)
        ambiguous: ErrorResponse | None = None
        for _ in range(MAX_FORMATS):
            body, parts = self._body(request, params, request_format)
            # About as large as a body with images that was rejected for its size?
            rejected = self._rejected_bytes.get(request.model)
            if rejected is not None and parts.has_images and len(JsonBody(body)) >= _OVERSIZED_SHARE * rejected:
                request_format = replace(request_format, oversized=True)
                body, parts = self._body(request, params, request_format)
            try:
                reply = await self._post(request, body)
            except ErrorReturned as error:
                response = error.response
                if response.status == _TOO_LARGE and parts.has_images and parts.may_drop_images:
                    size = len(JsonBody(body))
                    self._rejected_bytes[request.model] = min(size, self._rejected_bytes.get(request.model, size))
                    continue
                adapted = adapt_format(request_format, response, parts)
                next_format = self._next_format(
                    request, response, request_format, parts, adapted, is_searching=ambiguous is not None
                )
                if next_format is None:
                    raised = _final_error(ambiguous or response, parts)
                    raised.request_format = request_format
                    raise raised from error
                if is_ambiguous(response) and adapted is None:
                    ambiguous = ambiguous or response
                request_format = next_format
                continue
            self.learned_formats.record_accepted(request, request_format)
            return replace(
                reply, request_format=request_format, text_only=not request_format.shows_images and has_images(request)
            )
        raise error_for_response(
            ambiguous
            or ErrorResponse(provider=self.provider, status=400, message="the server accepts no request format"),
            now=time.time(),
        )

    def _body(
        self, request: LLMRequest, params: Mapping[str, Any], request_format: RequestFormat
    ) -> tuple[dict[str, Any], RequestParts]:
        body = chat_body(request, params, request_format)
        may_drop_images = self.learned_formats.images is Images.AUTO
        return body, request_parts(request, body, request_format, may_drop_images=may_drop_images)

    def _next_format(
        self,
        request: LLMRequest,
        response: ErrorResponse,
        request_format: RequestFormat,
        parts: RequestParts,
        adapted: RequestFormat | None,
        *,
        is_searching: bool,
    ) -> RequestFormat | None:
        """Return the format to try after a rejection; None if it is not about the format.

        ``adapted`` is the format without the part that the error names, if it names one.
        """
        if adapted is None and _rejects_forced_images(response, parts):
            return None
        if not self._explores:
            return adapted if adapted is None or adapted.dropped == request_format.dropped else None
        if adapted is not None:
            if not is_searching:
                self.learned_formats.record_rejected(request, adapted)
            return adapted
        if response.status == _DEFAULT_ERROR_STATUS and not isinstance(
            error_for_response(response, now=0.0), LLMRejected
        ):
            return self.learned_formats.record_failed(request)
        if is_ambiguous(response) and not self.learned_formats.known(request.model).is_final:
            return next_untried_format(request_format, parts)
        return None

    async def _post(self, request: LLMRequest, body: Mapping[str, Any]) -> RawReply:
        async with self._encoding_lock:
            # Encoding a page takes a millisecond or two. One per loop iteration, so that thirty do not block the loop.
            await asyncio.sleep(0)
        sent = JsonBody(body)
        try:
            reply = await self._client.post(
                self._path.format(model=quote(request.model, safe="")),
                cast_to=str,
                content=sent,
                options={"headers": {"Content-Type": "application/json", "Content-Length": str(len(sent))}},
            )
        except _CONNECTION_ERRORS as error:
            if isinstance(error.__cause__, ReplyTooLarge):
                return broken_reply("", str(error.__cause__))
            raise self._connection_error(error) from error
        except openai.APIStatusError as error:
            response = self._read_error(
                parse_error_body(error.response.text), error.status_code, error.message, error.response.headers
            )
            if response.failed_generation is not None:
                text, message = response.failed_generation, response.message
                return RawReply(text=text, finish=FinishReason.STOP, model="", detail=message)
            raise ErrorReturned(response) from error
        failed = error_in(reply)
        if failed is None:
            return read_completion(reply)
        code = str(failed.get("code") or failed.get("type") or "")
        is_status = len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600
        status = int(code) if is_status else _DEFAULT_ERROR_STATUS
        raise ErrorReturned(self._read_error(failed, status, str(failed), {}))

    def _read_error(self, body: Any, status: int, default_message: str, headers: Mapping[str, str]) -> ErrorResponse:
        response = read_error(
            body, provider=self.provider, status=status, headers=headers, default_message=default_message
        )
        return replace(response, message=self._masked(response.message))

    async def models(self) -> str:
        """Return the body of the server's model list.

        Raises:
            LLMRejected: the server does not accept the key.
            LLMUnavailable: the server has no list.
        """
        try:
            return await self._client.get("/models", cast_to=str)
        except openai.AuthenticationError as error:
            raise LLMRejected(f"{self.provider}: the key is not accepted for the list of models") from error
        except (openai.OpenAIError, *_CONNECTION_ERRORS) as error:
            raise LLMUnavailable(f"{self.provider}: no list of models ({type(error).__name__})") from error

    async def aclose(self) -> None:
        await self._client.close()

    def _connection_error(self, error: Exception) -> LLMUnavailable:
        """Return the error for a timeout or a failed connection.

        The root cause decides, because the SDK reports a refused connection of aiohttp as a timeout.
        """
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        refused = isinstance(cause, OSError | aiohttp.ClientError) and not isinstance(cause, TimeoutError)
        if isinstance(error, openai.APITimeoutError) and not refused:
            return timeout_error(self.provider)
        return connection_error(self.provider, cause, was_sent=isinstance(cause, _REPLY_LOST), mask=self._masked)

    def _masked(self, message: str) -> str:
        """Mask the API key, which some servers repeat in their error messages."""
        key = self._client.api_key
        return message.replace(key, "***") if is_secret(key) else message


def _final_error(response: ErrorResponse, parts: RequestParts) -> LLMError:
    """Return the error to raise after a rejection that no other format resolves."""
    if _rejects_forced_images(response, parts):
        return images_rejected(response)
    return error_for_response(response, now=time.time())


def _rejects_forced_images(response: ErrorResponse, parts: RequestParts) -> bool:
    """Return whether the model takes no images and the request must have them (``ASSAY_IMAGES=on``)."""
    return parts.has_images and not parts.may_drop_images and says_no_images(response)


def chat_body(request: LLMRequest, params: Mapping[str, Any], request_format: RequestFormat) -> dict[str, Any]:
    """Return the body of a chat completion request, in the request format of a server."""
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
    return [{"role": "user", "content": sorted(parts, key=lambda part: not is_image(part))}]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


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


_FINISH: Final = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
    "error": FinishReason.BROKEN,
}
"""Every other ``finish_reason`` means ``FinishReason.STOP``."""
MAX_TOKENS: Final = 1_000_000_000
"""Maximum token count of one reply. Larger ones are not counts."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")


def read_completion(body: str) -> RawReply:
    """Parse the body of a response with status 200. If it is not a chat completion, return ``FinishReason.BROKEN``."""
    try:
        completion = completion_in(body)
        choice = _first_choice(completion)
        message = choice.get("message") or choice.get("delta")
        if message is None:
            message = {"content": choice["text"]}
        refusal = message.get("refusal")
        usage = _object_in(completion, "usage")
        details = _object_in(usage, "prompt_tokens_details")
        output_details = _object_in(usage, "completion_tokens_details")
        text = _text_of(message)
        if not text.strip() and isinstance(refusal, str):
            text = refusal
        finish = _FINISH.get(str(choice.get("finish_reason")), FinishReason.STOP)
        return RawReply(
            text=text,
            finish=FinishReason.REFUSAL if refusal else finish,
            detail="the provider ended it with an error" if finish is FinishReason.BROKEN else "",
            model=str(completion.get("model") or ""),
            input_tokens=_token_count(usage.get("prompt_tokens")),
            output_tokens=_token_count(usage.get("completion_tokens")),
            cached_tokens=_token_count(details.get("cached_tokens")) or 0,
            cache_write_tokens=_token_count(details.get("cache_write_tokens")) or 0,
            reasoning_tokens=_token_count(output_details.get("reasoning_tokens")) or 0,
        )
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return broken_reply(body)


def _object_in(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object of the body; an empty one if it is missing or no object."""
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _token_count(value: Any) -> int | None:
    """Return a token count of a server; None if it is missing or impossible."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= MAX_TOKENS else None


def completion_in(body: str) -> Mapping[str, Any]:
    """Return the completion in a body: a JSON object, or the combined server-sent events.

    Raises:
        ValueError: the body is neither.
    """
    body = body.lstrip("\ufeff \t\r\n")
    completion = _assembled(body) if body.startswith(("data:", "event:", "id:", ":")) else json.loads(body)
    if not isinstance(completion, Mapping):
        raise ValueError("not an object")
    return completion


def error_in(body: str) -> Mapping[str, Any] | None:
    """Return the error that a server sent with status 200 instead of a completion; None if there is none."""
    if len(body) > MAX_BROKEN_CHARS or "error" not in body:
        return None
    try:
        completion = completion_in(body)
        error = completion.get("error")
        if error is None and completion.get("choices"):
            choice = completion["choices"][0]
            error = None if _text_of(choice.get("message") or {}) else choice.get("error")
    except (ValueError, TypeError, AttributeError, LookupError):
        return None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, Mapping) else None


def _first_choice(completion: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice. Some gateways omit the list ``choices``."""
    if "choices" not in completion and isinstance(completion.get("message"), Mapping):
        return completion
    choice: Mapping[str, Any] = completion["choices"][0]
    return choice


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of the model. Reasoning is used only if there is no other text, after an unclosed ``<think>``."""
    content = _content(message.get("content"))
    calls = list(_arguments(message))
    if calls:
        return "\n".join([content, *calls] if "{" in content else calls)
    if content.strip():
        return content
    reasoning = next((_content(message[key]) for key in _REASONING if message.get(key)), "")
    return f"<think>\n{reasoning}" if reasoning.strip() else content


def _content(content: Any) -> str:
    """Return the text of a message's content: a string, a list of parts, or a JSON object that is already parsed."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(map(_part, content))
    return json.dumps(content) if isinstance(content, Mapping) else ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") not in (None, "text", "output_text", "json", "output_json"):
        return ""  # reasoning, or an image
    text = part.get("text", part.get("json", part.get("content")))
    if isinstance(text, Mapping) and isinstance(text.get("value"), str):
        return str(text["value"])
    return _content(text)


def _arguments(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments of each tool call and of a legacy function call, as JSON text."""
    calls = [call.get("function") or call for call in message.get("tool_calls") or ()]
    for call in [*calls, message.get("function_call") or {}]:
        arguments = call.get("arguments", call.get("input"))
        if arguments:
            yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def _assembled(stream: str) -> Mapping[str, Any]:
    """Combine server-sent events to one completion. If the stream breaks off, its ``finish_reason`` is ``error``."""
    whole: dict[str, Any] = {}
    message: dict[str, list[str]] = {}
    calls: dict[Any, dict[str, list[str]]] = {}
    finish, is_done = None, False
    for data in _events(stream):
        if not data:
            continue
        if data == "[DONE]":
            is_done = True
            break
        chunk = json.loads(data)
        whole |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in (chunk.get("choices") or ())[:1]:
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
            for key in ("content", "refusal", *_REASONING):
                _append(message, key, delta.get(key))
            for place, call in enumerate(delta.get("tool_calls") or ()):
                function = call.get("function") or {}
                _append(calls.setdefault(call.get("index", place), {}), "arguments", function.get("arguments"))
            _append(calls.setdefault("legacy", {}), "arguments", (delta.get("function_call") or {}).get("arguments"))
    if finish is None and not is_done:
        finish = "error"
    message_fields: dict[str, Any] = {key: "".join(pieces) for key, pieces in message.items()}
    message_fields["tool_calls"] = [{"arguments": "".join(call["arguments"])} for call in calls.values() if call]
    return {**whole, "choices": [] if "error" in whole else [{"message": message_fields, "finish_reason": finish}]}


def _events(stream: str) -> Iterator[str]:
    """Yield the data of each event. Servers write it on one line, but not all add an empty line after it."""
    return (line[5:].strip() for line in stream.split("\n") if line.startswith("data:"))


def _append(pieces: dict[str, list[str]], key: str, piece: Any) -> None:
    if piece:
        pieces.setdefault(key, []).append(_content(piece))
