"""Observation of the requests of one answer: every request and its outcome is reported once to each observer.

``ObservedLLM`` is the only wrapper around the client of a model. Call log, usage, metrics, detection of rejections and
recorders of replies are observers.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import reduce
from operator import add
from typing import Any

from judges.errors import LLMError, LLMRejected, RejectionScope
from judges.llm.client import LLMClient, LLMReply, LLMRequest, role_of
from rubrics.verdict import Usage

_NO_ACCESS = 403


class RequestObserver:
    """Observer of requests, which does nothing by default."""

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        """Observe a reply. ``seconds`` is the time from the request to its outcome."""

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        """Observe an error."""

    def cancelled(self, request: LLMRequest) -> None:
        """Observe a cancelled request. Not a coroutine, because the cancelled task must not wait."""


class ObservedLLM:
    """``LLMClient`` that reports the requests to ``inner``.

    ``prepare`` changes each request first, so that observers, cache key and server see the same request. ``inner`` is
    shared and stays open, unless ``owns_inner``.
    """

    def __init__(
        self,
        inner: LLMClient,
        observers: Sequence[RequestObserver],
        *,
        prepare: Callable[[LLMRequest], LLMRequest] = lambda request: request,
        owns_inner: bool = False,
    ) -> None:
        self._inner = inner
        self._observers = observers
        self._prepare = prepare
        self._owns_inner = owns_inner

    async def complete(self, request: LLMRequest) -> LLMReply:
        request = self._prepare(request)
        began = time.monotonic()
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            for observer in self._observers:
                await observer.failed(request, error)
            raise
        except asyncio.CancelledError:
            for observer in self._observers:
                observer.cancelled(request)
            raise
        seconds = time.monotonic() - began
        for observer in self._observers:
            await observer.replied(request, reply, seconds)
        return reply

    async def aclose(self) -> None:
        if self._owns_inner:
            await self._inner.aclose()


class UsageMeter(RequestObserver):
    """Usage of one answer by model and role, including the requests of helpers that its judge created."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, str], Usage] = {}
        self._requests = self._failed = self._cached_tokens = self._reasoning_tokens = 0
        self._served: Counter[str] = Counter()

    @property
    def total(self) -> Usage:
        return reduce(add, self._used.values(), Usage())

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON row per model and role as in results, sorted: ``{model, role, calls, ...}``."""
        return [{"model": model, "role": role, **asdict(used)} for (model, role), used in sorted(self._used.items())]

    def judge_usage(self) -> dict[str, Any]:
        """Return the counts of ``judge_usage`` in results. ``served_models`` includes replies from the cache."""
        return {
            "requests": self._requests,
            "failed_requests": self._failed,
            "input_tokens": self.total.input_tokens,
            "cached_input_tokens": self._cached_tokens,
            "output_tokens": self.total.output_tokens,
            "reasoning_tokens": self._reasoning_tokens,
            "served_models": dict(self._served),
        }

    async def replied(self, request: LLMRequest, reply: LLMReply, seconds: float) -> None:
        self._add(request, reply.usage)
        self._served[reply.model] += 1
        if not reply.cached:
            self._requests += 1
            self._cached_tokens += reply.tokens.get("cached_input_tokens", 0)
            self._reasoning_tokens += reply.tokens.get("reasoning_tokens", 0)

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        self._add(request, error.usage)
        self._requests += 1
        self._failed += 1

    def _add(self, request: LLMRequest, used: Usage) -> None:
        key = request.model, role_of(request)
        self._used[key] = self._used.get(key, Usage()) + used


class RejectionMonitor(RequestObserver):
    """Stores the first rejection of the key, the account or the model, so that judging stops.

    Rejections of a model other than ``models``, those of the run, do not stop it.
    """

    def __init__(self, *models: str) -> None:
        self._models = models
        self.rejection: LLMRejected | None = None

    async def failed(self, request: LLMRequest, error: LLMError) -> None:
        if self.rejection is not None or not isinstance(error, LLMRejected):
            return
        is_affected = error.scope is RejectionScope.ENDPOINT or request.model in self._models
        if is_affected and rejects_all_requests(error):
            self.rejection = error


def rejects_all_requests(error: LLMRejected) -> bool:
    """Return whether the provider would reject every request of the run because of its key, account or model."""
    return error.scope is RejectionScope.ENDPOINT or (
        error.scope is RejectionScope.MODEL and (error.no_such_model or error.status == _NO_ACCESS)
    )
