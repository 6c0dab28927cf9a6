"""The two kinds of client behind the six public names: one that blocks and one that is awaited.

Both ask through ``judges.llm``, so retries are bounded, refusals for good end at once and replies are checked
against their schema. The public classes only say which provider they are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from judges.errors import LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.openai import AZURE_API_VERSION
from judges.llm.overhearing import overheard
from judges.llm.providers import DEFAULT_PROVIDER, Access, make_client, parse_model
from judges.prompting.verdict_reply import BinaryEvalResult
from mind2web2.environment import model_name, value_of
from mind2web2.loop_end import at_end_of_loop
from mind2web2.outside import outside
from rubrics.verdict import Usage

__all__ = ["AsyncProviderClient", "ProviderClient", "Response"]

Response: TypeAlias = Any
"""The parsed object (None when the model refused) or the text; with ``count_token`` a pair of that and a dict."""

_ANY_MODEL = "any"
_RETIRED_DEFAULT = "o4-mini"
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
            return await respond(llm, as_request(**request), count_token=count_token)
        finally:
            await llm.aclose()


class AsyncProviderClient:
    """The same, to be awaited. May be used from one event loop after another."""

    provider: ClassVar[str]

    def __init__(self) -> None:
        self._access = _access()
        self._unused = [_open(self.provider, self._access)]  # now: a missing key is told to whoever makes the client
        self._numbers = count()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LLMClient] = WeakKeyDictionary()

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Ask with the keywords of a chat completion; ``response_format`` is a pydantic class or left out.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        return await respond(self, as_request(**request), count_token=count_token)

    async def complete(self, request: LLMRequest) -> LLMReply:
        """The same as our judges ask, with what the reply cost.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        # Two equal calls are two questions: a script may put something to the vote.
        return await self._of_this_loop().complete(replace(request, vote=next(self._numbers)))

    async def aclose(self) -> None:
        """Connections close with their event loops."""

    def _of_this_loop(self) -> LLMClient:
        """Connections belong to the event loop they were opened in, and are closed with it."""
        loop = asyncio.get_running_loop()
        llm = self._by_loop.get(loop)
        if llm is None:
            llm = self._by_loop[loop] = self._unused.pop() if self._unused else _open(self.provider, self._access)
            at_end_of_loop(llm.aclose)
        return llm


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


def open_provider(provider: str) -> LLMClient:
    """A client for any model of a provider, by the keys of this process.

    Raises:
        judges.errors.ModelNotConfigured: a key is missing.
    """
    return _open(provider, _access())


def _open(provider: str, access: Access) -> LLMClient:
    elsewhere = outside().model(provider)
    if elsewhere is not None:
        return overheard(elsewhere)
    # Whoever asks holds its own semaphore around each call.
    llm, _ = make_client(f"{provider}/{_ANY_MODEL}", access=access, semaphore=asyncio.Semaphore(_UNBOUNDED))
    if parse_model(f"{provider}/{_ANY_MODEL}").provider == DEFAULT_PROVIDER and access.openai_base_url is None:
        llm = _RetiredNames(llm)
    return overheard(llm)


class _RetiredNames:
    """A client of OpenAI's own API that asks the configured model if a script names the toolkit's retired default."""

    def __init__(self, inner: LLMClient) -> None:
        self._inner = inner

    async def complete(self, request: LLMRequest) -> LLMReply:
        if request.model == _RETIRED_DEFAULT:
            params = {name: value for name, value in request.params.items() if name != "temperature"}
            request = replace(request, model=model_name(), params=params)
        return await self._inner.complete(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def respond(llm: LLMClient, request: LLMRequest, *, count_token: bool) -> Response:
    """Ask, and answer as the public clients do.

    Raises:
        judges.errors.LLMError: there was no usable reply.
    """
    try:
        reply = await llm.complete(request)
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
        model=model,
        messages=tuple(messages),
        schema=response_format if is_schema else None,
        # A verdict must be a boolean; a script's own classes are read as laxly as it declares them.
        purpose="verify" if response_format is BinaryEvalResult else "free",
        params=params,
    )


def _said(reply: LLMReply) -> BaseModel | str:
    return reply.text if reply.parsed is None else reply.parsed


def _tokens(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _in_own_thread(work: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine to its end in a thread of its own: the caller may be inside a running event loop.

    What holds where the call is made holds there, too: above all, whose record it belongs to.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-llm") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
