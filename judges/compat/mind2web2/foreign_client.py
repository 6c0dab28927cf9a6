"""Adapter for the client object of a task script, and error translation for foreign objects.

Any object with ``async_response`` is accepted as a client. It is called with exactly the keyword arguments that the
public toolkit uses. Whatever a foreign object raises is translated into an error of this project. Our own ``LLMClient``
bypasses the adapter, which would lose the token usage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from judges import errors
from judges.errors import (
    LLMError,
    LLMOutputUnusable,
    LLMRejected,
    LLMTimeout,
    LLMUnavailable,
    ReplyNotCached,
    UnusableKind,
)
from judges.llm.client import LLMReply, LLMRequest, Message
from judges.llm.replies import with_exact_keys
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client.judge import AnswerScope, ContextLengthError, JudgeContentError, answer_scope
from mind2web2.llm_client.provider_client import AsyncProviderClient
from rubrics.verdict import Usage

_PERMANENT = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
_ASYNC_RESPONSE, _RESPONSE = LLMClient.async_response, AsyncProviderClient.response
_ONE_CALL = Usage(calls=1, usd=None)


@contextmanager
def foreign_object(
    translated: Callable[[Exception], Exception], passing: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run code of a foreign object and translate its errors, except those of the types in ``passing``."""
    try:
        yield
    except passing:
        raise
    except Exception as error:
        raise translated(error) from error


class ForeignClient:
    """Sends requests through ``client.async_response`` and holds ``call_slot`` during each. Never closes the client.

    Requests belong to ``scope``. After a permanent error, it sends no further ones.
    """

    def __init__(
        self, client: Any, call_slot: Callable[[], AbstractAsyncContextManager[Any]], scope: AnswerScope
    ) -> None:
        self._client = client
        self._call_slot = call_slot
        self._scope = scope

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Send one request without retries; retrying is the foreign client's responsibility.

        Raises:
            LLMError: the model gave no verdict on this content, or the client raised an error that is not the judge's,
                or returned something else than requested.
            mind2web2.JudgeError: the answer can have no result.
            ReplyNotCached: the request asks for a cached reply, and the client has no cache.
        """
        if request.cache_only:
            raise ReplyNotCached
        keywords: dict[str, Any] = {
            "model": request.model,
            "messages": [_text_first(message) for message in request.messages],
            "response_format": request.reply_class,
        }
        async with self._call_slot():
            self._scope.check()
            own = _own_client(self._client)
            try:
                with answer_scope(self._scope):
                    if own is not None:
                        return await own.complete(request)
                    with self._scope.count_request(), foreign_object(_translated, passing=errors.JudgeError):
                        reply = await self._client.async_response(**keywords)
            except JudgeContentError as error:
                raise _content_fault(error) from error
        return LLMReply(text="", parsed=_parse(reply, request), model=request.model, usage=_ONE_CALL)

    async def aclose(self) -> None:
        """Do nothing: the client belongs to the script's caller."""


def _text_first(message: Message) -> Message:
    """Return a message with its text before its images, as in the public toolkit."""
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": sorted(content, key=lambda part: part["type"] != "text")}


def _content_fault(error: JudgeContentError) -> LLMError:
    """Return the error of a model client for a content error."""
    if isinstance(error.__cause__, LLMError):
        return error.__cause__
    if isinstance(error, ContextLengthError):
        return LLMRejected(str(error), too_long=True, usage=_ONE_CALL)
    return LLMOutputUnusable(UnusableKind.FILTERED, str(error), usage=_ONE_CALL)


def _own_client(client: Any) -> AsyncProviderClient | None:
    """Return the provider client of an unmodified ``LLMClient`` of ours; None for other or monkeypatched objects."""
    if type(client) is not LLMClient or "async_response" in vars(client):
        return None
    provider_client = client.client
    ours = isinstance(provider_client, AsyncProviderClient) and "response" not in vars(provider_client)
    replaced = LLMClient.async_response is not _ASYNC_RESPONSE or type(provider_client).response is not _RESPONSE
    return provider_client if ours and not replaced else None


def _translated(error: Exception) -> LLMError:
    message = f"the client raised {type(error).__name__}: {error}"
    if isinstance(error, TimeoutError):
        return LLMTimeout(message, usage=_ONE_CALL)
    if getattr(error, "status_code", None) in _PERMANENT:
        return LLMRejected(message, usage=_ONE_CALL)
    return LLMUnavailable(message, usage=_ONE_CALL)


def _parse(reply: Any, request: LLMRequest) -> BaseModel | None:
    """Return the reply as an instance of the request's schema.

    Raises:
        LLMOutputUnusable: it is None, as after a refusal, or does not match.
    """
    schema = request.reply_class
    if schema is None or isinstance(reply, schema):
        return reply if isinstance(reply, BaseModel) else None
    if reply is None:
        raise LLMOutputUnusable(UnusableKind.REFUSED, "the client returned no parsed reply", usage=_ONE_CALL)
    try:
        if isinstance(reply, str | bytes):
            return schema.model_validate_json(json.dumps(with_exact_keys(json.loads(reply), schema)))
        if isinstance(reply, Mapping):
            return schema.model_validate(with_exact_keys(dict(reply), schema))
        return schema.model_validate(reply, from_attributes=True)
    except Exception as error:  # validators of a script's class may raise anything
        raise LLMOutputUnusable(
            UnusableKind.OFF_SCHEMA,
            f"the client returned {type(reply).__name__}, which does not match {schema.__name__}",
            usage=_ONE_CALL,
        ) from error
