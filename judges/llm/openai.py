"""OpenAI, Azure OpenAI and every server that speaks their chat completions API.

The SDK's own retries are off, so each call here is one attempt and counted once. The body is encoded by
``encoding`` and the reply read by hand: what some servers send with a 200 is no chat completion, and that is a
kind of unusable reply here, not a crash.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import openai

from judges.errors import LLMUnavailable
from judges.llm.client import LLMRequest
from judges.llm.encoding import JsonBody
from judges.llm.faults import StatusFault, connection_fault, status_fault, timeout_fault
from judges.llm.schemas import response_format
from judges.llm.wire import Finish, RawReply

OPENAI_BASE_URL = "https://api.openai.com/v1"
AZURE_API_VERSION = "2024-10-21"
NO_KEY = "no-key"
"""Sent to servers of one's own that ask for no key: the SDK insists on one."""
BACKSTOP_S = 600.0
"""The SDK's own time limit; the retrier sets the real one."""
MAX_BROKEN_CHARS = 4_000
"""How much is kept of a body that is no chat completion."""

_FINISH = {
    "stop": Finish.STOP,
    "tool_calls": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}


def open_openai(*, api_key: str | None, base_url: str | None = None, timeout_s: float = BACKSTOP_S) -> ChatBackend:
    """OpenAI itself, or with ``base_url`` a server that speaks its API."""
    endpoint = (base_url or OPENAI_BASE_URL).rstrip("/")
    client = openai.AsyncOpenAI(
        api_key=api_key or NO_KEY,
        base_url=endpoint,
        max_retries=0,
        timeout=timeout_s,
        http_client=openai.DefaultAioHttpClient(),
    )
    return ChatBackend(client, provider="openai", endpoint=endpoint)


def open_azure(
    *, api_key: str, base_url: str, api_version: str = AZURE_API_VERSION, timeout_s: float = BACKSTOP_S
) -> ChatBackend:
    """Azure OpenAI: the model's name is that of a deployment, and stands in the path."""
    endpoint = base_url.rstrip("/")
    client = openai.AsyncAzureOpenAI(
        api_key=api_key,
        base_url=f"{endpoint}/openai",
        api_version=api_version,
        max_retries=0,
        timeout=timeout_s,
        http_client=openai.DefaultAioHttpClient(),
    )
    return ChatBackend(client, provider="azure", endpoint=endpoint, path="/deployments/{model}/chat/completions")


class ChatBackend:
    """One account at one endpoint. ``path`` is below the client's base URL and may name the ``{model}``."""

    def __init__(
        self, client: openai.AsyncOpenAI, *, provider: str, endpoint: str, path: str = "/chat/completions"
    ) -> None:
        self.provider = provider
        self.endpoint = endpoint
        self._client = client
        self._path = path
        self._turn = asyncio.Lock()

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        body: dict[str, Any] = {"model": request.model, "messages": request.messages, **params}
        if request.schema is not None:
            body["response_format"] = response_format(request.schema)
        async with self._turn:
            # Sending a page is a millisecond or two of work: one a round, or thirty at once would hold up the loop.
            await asyncio.sleep(0)
        sent = JsonBody(body)
        try:
            reply = await self._client.post(
                self._path.format(model=quote(request.model, safe="")),
                cast_to=str,
                content=sent,
                options={"headers": {"Content-Type": "application/json", "Content-Length": str(len(sent))}},
            )
        except openai.APIConnectionError as error:
            raise self._fault(error) from error
        except openai.APIStatusError as error:
            raise status_fault(
                StatusFault(
                    provider=self.provider,
                    status=error.status_code,
                    code=error.code or error.type or "",
                    message=self._message(error),
                    headers=error.response.headers,
                ),
                now=time.time(),
            ) from error
        return read_completion(reply)

    async def models(self) -> str:
        """The body of the server's list of models. Raises LLMUnavailable if there is none."""
        try:
            return await self._client.get("/models", cast_to=str)
        except openai.OpenAIError as error:
            raise LLMUnavailable(f"{self.provider}: no list of models ({type(error).__name__})") from error

    async def aclose(self) -> None:
        await self._client.close()

    def _fault(self, error: openai.APIConnectionError) -> LLMUnavailable:
        """No reply in time, or no connection: by the first cause, since the SDK takes what aiohttp says of a refused
        connection for a timeout.
        """
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        refused = isinstance(cause, OSError | aiohttp.ClientError) and not isinstance(cause, TimeoutError)
        if isinstance(error, openai.APITimeoutError) and not refused:
            return timeout_fault(self.provider)
        return connection_fault(self.provider, cause)

    def _message(self, error: openai.APIStatusError) -> str:
        """The provider's own words, without the key that some servers repeat in them."""
        body = error.body
        said = body.get("message") if isinstance(body, Mapping) else None
        return str(said or error.message).replace(self._client.api_key, "***")


def read_completion(body: str) -> RawReply:
    """Read the body of a 200. What is no chat completion comes back as ``Finish.BROKEN``."""
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
        finish = _FINISH.get(choice.get("finish_reason") or "stop", Finish.STOP)
        usage = completion.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        return RawReply(
            text=next((said for said in (text, refusal) if said and isinstance(said, str)), ""),
            finish=Finish.REFUSAL if refusal else finish,
            model=str(completion.get("model") or ""),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens") or 0,
            cache_write_tokens=details.get("cache_write_tokens") or 0,
        )
    except (ValueError, TypeError, AttributeError, LookupError):
        detail = "its body is no chat completion"
        return RawReply(text=body[:MAX_BROKEN_CHARS], finish=Finish.BROKEN, model="", detail=detail)
