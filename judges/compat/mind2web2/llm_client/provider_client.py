"""Base classes of the public client classes: one blocking, one asynchronous.

Both send requests as given, or with the model and parameters of a judge, and raise the errors of
``mind2web2.llm_client.judge``. The public classes only set the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from judges.errors import LLMError, LLMOutputUnusable, LLMRejected, ModelNotConfigured
from judges.llm.call_recording import ActiveRecorder
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.observed import ObservedLLM
from judges.llm.provider_adapter import AZURE_API_VERSION, Access
from judges.llm.providers import DEFAULT_PROVIDER, make_direct_client
from judges.llm.retry import RetryPolicy, retry_window
from judges.prompting.rendering import BinaryEvalResult
from mind2web2.environment import model_name, value_of
from mind2web2.external_services import external_services
from mind2web2.llm_client.judge import (
    AnswerScope,
    ContextLengthError,
    JudgeConfig,
    JudgeContentError,
    JudgeError,
    JudgeUsage,
    current_scope,
)
from mind2web2.loop_cleanup import close_with_loop

__all__ = ["AsyncProviderClient", "ProviderClient", "Response"]

Response: TypeAlias = Any
"""Parsed object or text; with ``count_token``, a pair of that and a dict of token counts."""

_RETIRED_DEFAULT = "o4-mini"
_JUDGE_PARAMETERS = ("reasoning_effort", "temperature")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options of a client: the judge that replaces model and parameters, the server, and the retries."""

    judge: JudgeConfig | None = None
    base_url: str | None = None
    policy: RetryPolicy = field(default_factory=retry_window)

    def as_request(self, **arguments: Any) -> LLMRequest:
        """Return the request for the arguments of a chat completion. With a judge, they need no model."""
        return as_request(**arguments if self.judge is None else {"model": self.judge.model, **arguments})

    def prepared(self, request: LLMRequest) -> LLMRequest:
        """Return the request with model, effort and temperature of the judge, if there is one."""
        if self.judge is None:
            return request
        params = {name: value for name, value in request.params.items() if name not in _JUDGE_PARAMETERS}
        params |= {name: value for name, value in self.judge.request_params().items() if name != "model"}
        return replace(request, model=self.judge.model, params=params)


class _ProviderClientBase:
    """Client of one provider, with keys from the environment. ``usage`` counts its requests."""

    provider: ClassVar[str]

    def __init__(self, options: ClientOptions | None = None, usage: JudgeUsage | None = None) -> None:
        """``options`` and ``usage`` are set by ``LLMClient``.

        Raises:
            judges.errors.ModelNotConfigured: a key is missing.
        """
        self._options = options or ClientOptions()
        self._access = _access()
        self.usage = usage or JudgeUsage()

    def _open(self) -> LLMClient:
        return _open(self.provider, self._access, self._options)

    async def _answer_script(self, reply: Awaitable[LLMReply], *, count_token: bool) -> Response:
        """Return the reply to a request of the script in the form of the public clients. Record that there is none."""
        try:
            return as_response(await reply, count_token=count_token)
        except (JudgeError, asyncio.CancelledError) as error:
            current_scope().lose_request(error)
            raise

    async def _send(self, llm: LLMClient, request: LLMRequest) -> LLMReply:
        """Send a request, count it, and remember an error after which its answer can have no result.

        Raises:
            JudgeError: there is no usable reply, or an earlier request for the same answer failed permanently.
        """
        scope = current_scope()
        scope.check()
        records: list[JudgeUsage | AnswerScope] = [self.usage, scope]
        try:
            reply = await llm.complete(self._options.prepared(request))
        except LLMError as error:
            for record in records:
                record.add_request(error.tokens, failed=True)
            judge_error = as_judge_error(error)
            scope.record(judge_error)
            raise judge_error from error
        for record in records:
            record.add_request(tokens_of(reply))
        return reply


class ProviderClient(_ProviderClientBase):
    """Blocking client of one provider.

    Raises:
        judges.errors.ModelNotConfigured: a key is missing.
    """

    def __init__(self, options: ClientOptions | None = None, usage: JudgeUsage | None = None) -> None:
        super().__init__(options, usage)
        self._open()  # fails now if a key is missing

    def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Send a request with the arguments of a chat completion; ``response_format`` is a pydantic class or omitted.

        Raises:
            JudgeError: there is no usable reply.
        """
        return _run_in_thread(self._ask(count_token, request))

    async def _ask(self, count_token: bool, request: dict[str, Any]) -> Response:
        llm = self._open()
        try:
            sent = self._send(llm, self._options.as_request(**request))
            return await self._answer_script(sent, count_token=count_token)
        finally:
            await llm.aclose()


class AsyncProviderClient(_ProviderClientBase):
    """Asynchronous client of one provider. May be used from several event loops, one after the other."""

    def __init__(self, options: ClientOptions | None = None, usage: JudgeUsage | None = None) -> None:
        super().__init__(options, usage)
        self._unused = [self._open()]  # fails now if a key is missing
        self._numbers = count()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LLMClient] = WeakKeyDictionary()

    async def response(self, *, count_token: bool = False, **request: Any) -> Response:
        """Send a request with the arguments of a chat completion; ``response_format`` is a pydantic class or omitted.

        Raises:
            JudgeError: there is no usable reply.
        """
        sent = self.complete(self._options.as_request(**request))
        return await self._answer_script(sent, count_token=count_token)

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Like ``response``, for a request of our judges; the reply includes its usage.

        Raises:
            JudgeError: there is no usable reply.
        """
        # Equal calls are separate questions, because a script may take a vote.
        return await self._send(self._of_this_loop(), replace(request, vote=next(self._numbers)))

    async def aclose(self) -> None:
        """Do nothing: connections are closed with their event loops."""

    def _of_this_loop(self) -> LLMClient:
        """Return the client of the running event loop. Its connections are closed when the loop ends."""
        loop = asyncio.get_running_loop()
        llm = self._by_loop.get(loop)
        if llm is None:
            llm = self._by_loop[loop] = self._unused.pop() if self._unused else self._open()
            close_with_loop(llm.aclose)
        return llm


def as_judge_error(error: LLMError) -> JudgeError:
    """Return the public error for an error of a model client."""
    if isinstance(error, LLMRejected) and error.too_long:
        return ContextLengthError(str(error))
    if isinstance(error, LLMOutputUnusable):
        return JudgeContentError(str(error))
    judge_error = JudgeError(str(error))
    judge_error.reason = error.reason
    return judge_error


def _check_scope() -> None:
    """Raise the error after which the answer that is being judged can have no result, if there is one."""
    current_scope().check()


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
    """Return a client for any model of a provider, with the keys and the retry window of the service.

    Raises:
        judges.errors.ModelNotConfigured: a key is missing.
    """
    return _open(provider, _access(), ClientOptions(policy=retry_window(seconds=RetryPolicy().total_s)))


def _open(provider: str, access: Access, options: ClientOptions) -> LLMClient:
    remote = external_services().model(provider)
    if remote is not None:
        if options.base_url is not None:
            raise ModelNotConfigured(
                "base_url of LLMClient cannot be used in the process of a task file, which has no network: "
                "set the address of the model server for the service"
            )
        return ObservedLLM(remote, (ActiveRecorder(),), owns_inner=True)
    # Callers hold their own semaphore during each call.
    llm = make_direct_client(
        provider, access, base_url=options.base_url, policy=options.policy, before_attempt=_check_scope
    )
    has_retired_models = provider == DEFAULT_PROVIDER and options.judge is None
    if has_retired_models and options.base_url is None and access.openai_base_url is None:
        llm = ObservedLLM(llm, (), prepare=_without_retired_model, owns_inner=True)
    return ObservedLLM(llm, (ActiveRecorder(),), owns_inner=True)


def _without_retired_model(request: LLMRequest) -> LLMRequest:
    """Replace the toolkit's default model, which OpenAI has shut down, with the configured one."""
    if request.model != _RETIRED_DEFAULT:
        return request
    params = {name: value for name, value in request.params.items() if name != "temperature"}
    return replace(request, model=model_name(), params=params)


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


def as_response(reply: LLMReply, *, count_token: bool) -> Response:
    """Return a reply in the form of the public clients."""
    content = reply.text if reply.parsed is None else reply.parsed
    return (content, tokens_of(reply)) if count_token else content


def tokens_of(reply: LLMReply) -> dict[str, Any]:
    """Return the token counts of a reply. Clients without detailed counts know only the totals."""
    if reply.tokens:
        return dict(reply.tokens)
    return {
        "input_tokens": reply.usage.input_tokens,
        "cached_input_tokens": 0,
        "output_tokens": reply.usage.output_tokens,
        "reasoning_tokens": 0,
        "served_model": reply.model,
    }


def _run_in_thread(work: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine in a new thread, because the caller may be inside a running event loop.

    Context variables of the caller are copied, in particular the record that the call belongs to.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="mind2web2-llm") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
