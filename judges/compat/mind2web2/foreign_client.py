"""A judge script's client, whatever it is, as the one client our judges ask through.

The border to foreign objects, this client and others: whatever they raise becomes one of our errors here. Any object
with ``async_response`` will do as a client; it is called with exactly the keywords the public toolkit uses. Our own
``LLMClient`` is asked without this detour, which would lose the tokens that a reply cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from judges.errors import JudgeError, LLMError, LLMOutputUnusable, LLMRejected, LLMTimeout, LLMUnavailable, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client.provider_client import AsyncProviderClient
from rubrics.verdict import Usage

_REFUSED_FOR_GOOD = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
)
_ASYNC_RESPONSE, _RESPONSE = LLMClient.async_response, AsyncProviderClient.response
_ONE_CALL = Usage(calls=1, usd=None)


@contextmanager
def foreign_object(
    translated: Callable[[Exception], Exception], passing: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Run the code of an object that is not ours; errors of the types in ``passing`` are raised as they are."""
    try:
        yield
    except passing:
        raise
    except Exception as error:
        raise translated(error) from error


class ForeignClient:
    """Asks through ``client.async_response``, holding ``call_slot`` during each call. It is not closed from here."""

    def __init__(self, client: Any, call_slot: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._client = client
        self._call_slot = call_slot

    async def complete(self, request: LLMRequest) -> LLMReply:
        """One call, no retry: how often to try is the foreign client's business.

        Raises:
            LLMError: it raised, or what it returned is not what was asked for.
        """
        keywords: dict[str, Any] = {
            "model": request.model,
            "messages": list(request.messages),
            "response_format": request.schema,
        }
        if "o" not in request.model:
            # The public toolkit's rule, odd as it is. Clients of our own choose parameters by model family.
            keywords["temperature"] = 0.0
        async with self._call_slot():
            if (own := _unchanged(self._client)) is not None:
                return await own.complete(request)
            with foreign_object(_translated, passing=JudgeError):
                said = await self._client.async_response(**keywords)
        return LLMReply(text="", parsed=_as_asked(said, request), model=request.model, usage=_ONE_CALL)

    async def aclose(self) -> None:
        """The client belongs to the caller of the script."""


def _unchanged(client: Any) -> AsyncProviderClient | None:
    """What asks behind an ``LLMClient`` of ours; None for other objects, and where somebody replaced a method."""
    if type(client) is not LLMClient or "async_response" in vars(client):
        return None
    asking = client.client
    ours = isinstance(asking, AsyncProviderClient) and "response" not in vars(asking)
    replaced = LLMClient.async_response is not _ASYNC_RESPONSE or type(asking).response is not _RESPONSE
    return asking if ours and not replaced else None


def _translated(error: Exception) -> LLMError:
    what = f"the client raised {type(error).__name__}: {error}"
    if isinstance(error, TimeoutError):
        return LLMTimeout(what, usage=_ONE_CALL)
    if getattr(error, "status_code", None) in _REFUSED_FOR_GOOD:
        return LLMRejected(what, usage=_ONE_CALL)
    return LLMUnavailable(what, usage=_ONE_CALL)


def _as_asked(said: Any, request: LLMRequest) -> BaseModel | None:
    """The reply as an instance of the request's schema.

    Raises:
        LLMOutputUnusable: it is None, as after a refusal, or something else.
    """
    schema = request.schema
    if schema is None or isinstance(said, schema):
        return said if isinstance(said, BaseModel) else None
    if said is None:
        raise LLMOutputUnusable(UnusableKind.REFUSED, "the client returned no parsed reply", usage=_ONE_CALL)
    try:
        if isinstance(said, str | bytes):
            return schema.model_validate_json(said)
        if isinstance(said, Mapping):
            return schema.model_validate(dict(said))
        return schema.model_validate(said, from_attributes=True)
    except Exception as error:  # the class is a script's own: its validators may raise anything
        raise LLMOutputUnusable(
            UnusableKind.OFF_SCHEMA,
            f"the client returned {type(said).__name__}, which is no {schema.__name__}",
            usage=_ONE_CALL,
        ) from error
