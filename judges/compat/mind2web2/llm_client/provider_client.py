"""Base classes of the public client classes: one blocking, one asynchronous.

Both use ``judges.llm``, so retries are bounded, permanent errors end at once and replies are validated. The public
classes only set the provider.
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
from judges.llm.call_recording import ActiveRecorder
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.observed import ObservedLLM
from judges.llm.providers import AZURE_API_VERSION, DEFAULT_PROVIDER, Access, make_client, parse_model
from judges.prompting.verdict_reply import BinaryEvalResult
from mind2web2.environment import model_name, value_of
from mind2web2.external_services import external_services
from mind2web2.loop_cleanup import close_with_loop
from rubrics.verdict import Usage

__all__ = ["AsyncProviderClient", "ProviderClient", "Response"]

Response: TypeAlias = Any
"""Parsed object (None after a refusal) or text; with ``count_token``, a pair of that and a dict of token counts."""

_ANY_MODEL = "any"
_RETIRED_DEFAULT = "o4-mini"
_UNBOUNDED = 1_000_000


class ProviderClient:
    """Blocking client of one provider. Reads keys from the environment.

    Raises:
        judges.errors.ModelNotConfigured: a key is missing.
    """

    provider: ClassVar[str]

    def __init__(self) -> None:
        self._access = _access()
        _open(self.provider, self._access)

    def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Send a request with the arguments of a chat completion; ``response_format`` is a pydantic class or omitted.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        return _run_in_thread(self._ask(count_token, request))

    async def _ask(self, count_token: bool, request: dict[str, Any]) -> Response:
        llm = _open(self.provider, self._access)
        try:
            return await respond(llm, as_request(**request), count_token=count_token)
        finally:
            await llm.aclose()


class AsyncProviderClient:
    """Asynchronous client of one provider. May be used from several event loops, one after the other."""

    provider: ClassVar[str]

    def __init__(self) -> None:
        self._access = _access()
        self._unused = [_open(self.provider, self._access)]  # fails now if a key is missing
        self._numbers = count()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LLMClient] = WeakKeyDictionary()

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Send a request with the arguments of a chat completion; ``response_format`` is a pydantic class or omitted.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        return await respond(self, as_request(**request), count_token=count_token)

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Like ``response``, for a request of our judges; the reply includes its usage.

        Raises:
            judges.errors.LLMError: there was no usable reply.
        """
        # Equal calls are separate questions, because a script may take a vote.
        return await self._of_this_loop().complete(replace(request, vote=next(self._numbers)))

    async def aclose(self) -> None:
        """Do nothing: connections are closed with their event loops."""

    def _of_this_loop(self) -> LLMClient:
        """Return the client of the running event loop. Its connections are closed when the loop ends."""
        loop = asyncio.get_running_loop()
        llm = self._by_loop.get(loop)
        if llm is None:
            llm = self._by_loop[loop] = self._unused.pop() if self._unused else _open(self.provider, self._access)
            close_with_loop(llm.aclose)
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
    """Return a client for any model of a provider, with the keys of this process.

    Raises:
        judges.errors.ModelNotConfigured: a key is missing.
    """
    return _open(provider, _access())


def _open(provider: str, access: Access) -> LLMClient:
    remote = external_services().model(provider)
    if remote is not None:
        return ObservedLLM(remote, (ActiveRecorder(),), owns_inner=True)
    # Callers hold their own semaphore during each call.
    llm, _ = make_client(f"{provider}/{_ANY_MODEL}", access=access, semaphore=asyncio.Semaphore(_UNBOUNDED))
    if parse_model(f"{provider}/{_ANY_MODEL}").provider == DEFAULT_PROVIDER and access.openai_base_url is None:
        llm = ObservedLLM(llm, (), prepare=_without_retired_model, owns_inner=True)
    return ObservedLLM(llm, (ActiveRecorder(),), owns_inner=True)


def _without_retired_model(request: LLMRequest) -> LLMRequest:
    """Replace the toolkit's default model, which OpenAI has shut down, with the configured one."""
    if request.model != _RETIRED_DEFAULT:
        return request
    params = {name: value for name, value in request.params.items() if name != "temperature"}
    return replace(request, model=model_name(), params=params)


async def respond(llm: LLMClient, request: LLMRequest, *, count_token: bool) -> Response:
    """Send a request and return the reply in the form of the public clients.

    Raises:
        judges.errors.LLMError: there was no usable reply.
    """
    try:
        reply = await llm.complete(request)
    except LLMOutputUnusable as error:
        if error.kind is not UnusableKind.REFUSED:
            raise
        return (None, _tokens(error.usage)) if count_token else None
    content = _content(reply)
    return (content, _tokens(reply.usage)) if count_token else content


def as_request(*, model: str, messages: list[dict[str, Any]], response_format: Any = None, **params: Any) -> LLMRequest:
    """Convert chat completion arguments to a request. A ``response_format`` that is not a class becomes a parameter."""
    is_schema = isinstance(response_format, type) and issubclass(response_format, BaseModel)
    if response_format is not None and not is_schema:
        params["response_format"] = response_format
    return LLMRequest(
        model=model,
        messages=tuple(messages),
        schema=response_format if is_schema else None,
        # A verdict must be a boolean. A script's own classes are parsed as leniently as they declare.
        purpose="verify" if response_format is BinaryEvalResult else "free",
        params=params,
    )


def _content(reply: LLMReply) -> BaseModel | str:
    return reply.text if reply.parsed is None else reply.parsed


def _tokens(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _run_in_thread(work: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine in a new thread, because the caller may be inside a running event loop.

    Context variables of the caller are copied, in particular the record that the call belongs to.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-llm") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
