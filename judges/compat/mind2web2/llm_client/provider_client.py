"""The two kinds of client behind the six public names: one that blocks and one that is awaited.

Both ask through ``judges.llm``, so retries are bounded, refusals for good end at once and replies are checked
against their schema. The public classes only say which provider they are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.openai import AZURE_API_VERSION
from judges.llm.providers import Access, make_client
from mind2web2.environment import value_of
from rubrics.verdict import Usage

__all__ = ["AsyncProviderClient", "ProviderClient", "Response"]

Response: TypeAlias = Any
"""The parsed object (None when the model refused) or the text; with ``count_token`` a pair of that and a dict."""

_ANY_MODEL = "any"
_UNBOUNDED = 1_000_000


class ProviderClient:
    """Asks one provider and blocks until the reply is there. Keys come from the environment.

    Raises:
        judges.errors.ModelNotConfigured: when it is made and a key is missing.
    """

    provider: ClassVar[str]

    def __init__(self) -> None:
        self._access = _access()
        _open(self.provider, self._access)

    def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Ask with the keywords of a chat completion; ``response_format`` is a pydantic class or left out.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        return _in_own_thread(self._ask(count_token, request))

    async def _ask(self, count_token: bool, request: dict[str, Any]) -> Response:
        llm = _open(self.provider, self._access)
        try:
            return await respond(llm, count_token, request)
        finally:
            await llm.aclose()


class AsyncProviderClient:
    """The same, to be awaited. May be used from one event loop after another."""

    provider: ClassVar[str]

    def __init__(self) -> None:
        self._access = _access()
        self._llm = _open(self.provider, self._access)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Ask with the keywords of a chat completion; ``response_format`` is a pydantic class or left out.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        return await respond(self._of_this_loop(), count_token, request)

    def _of_this_loop(self) -> LLMClient:
        """Connections belong to the event loop they were opened in."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not loop:
            self._llm = _open(self.provider, self._access)
        self._loop = loop
        return self._llm


def _access() -> Access:
    return Access(
        openai_api_key=value_of("OPENAI_API_KEY"),
        openai_base_url=value_of("OPENAI_BASE_URL"),
        azure_api_key=value_of("AZURE_OPENAI_API_KEY"),
        azure_endpoint=value_of("AZURE_OPENAI_ENDPOINT_URL"),
        azure_api_version=value_of("AZURE_OPENAI_API_VERSION") or AZURE_API_VERSION,
        aws_access_key=value_of("AWS_ACCESS_KEY"),
        aws_secret_key=value_of("AWS_SECRET_KEY"),
        aws_region=value_of("AWS_REGION") or "us-east-1",
    )


def _open(provider: str, access: Access) -> LLMClient:
    # Whoever asks holds its own semaphore around each call.
    llm, _ = make_client(f"{provider}/{_ANY_MODEL}", access=access, semaphore=asyncio.Semaphore(_UNBOUNDED))
    return llm


async def respond(llm: LLMClient, count_token: bool, keywords: dict[str, Any]) -> Response:
    try:
        reply = await llm.complete(as_request(**keywords))
    except LLMOutputUnusable as error:
        if error.kind is not UnusableKind.REFUSED:
            raise
        return (None, _tokens(error.usage)) if count_token else None
    said = _said(reply)
    return (said, _tokens(reply.usage)) if count_token else said


def as_request(*, model: str, messages: list[dict[str, Any]], response_format: Any = None, **params: Any) -> LLMRequest:
    """The keywords of a chat completion as a request; a ``response_format`` that is no class is a parameter."""
    is_schema = isinstance(response_format, type) and issubclass(response_format, BaseModel)
    if response_format is not None and not is_schema:
        params["response_format"] = response_format
    return LLMRequest(
        model=model, messages=tuple(messages), schema=response_format if is_schema else None, params=params
    )


def _said(reply: LLMReply) -> BaseModel | str:
    return reply.text if reply.parsed is None else reply.parsed


def _tokens(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _in_own_thread(work: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine to its end in a thread of its own: the caller may be inside a running event loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-llm") as thread:
        return thread.submit(asyncio.run, work).result()
