"""Client that sends each request as it is given: retries after transient faults, and nothing else.

For task scripts that bring their own model client. There is no cache, no repair request, no circuit breaker, no
shortened page and no parameter of a model family, so that a script gets exactly the reply to what it sends.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from judges.errors import LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.pricing import Prices
from judges.llm.provider_adapter import FinishReason, ProviderAdapter, RawReply
from judges.llm.remote import format_name, token_counts, usage_of
from judges.llm.replies import read_reply
from judges.llm.retry import Retrier, RetryPolicy

MAX_WAIT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWindow:
    """Retries of one request.

    Args:
        seconds: Time from the first attempt after which no further one starts.
        initial_delay_s: Delay before the first retry. It doubles up to ``MAX_WAIT_S``; each is multiplied by a random
            number from 0.5 to 1.5.
        attempt_s: Time limit of one attempt.
    """

    seconds: float = 900.0
    initial_delay_s: float = 1.0
    attempt_s: float = 600.0

    @property
    def policy(self) -> RetryPolicy:
        return RetryPolicy(
            max_tries=None,
            total_s=self.seconds,
            long_total_s=self.seconds,
            first_wait_s=self.initial_delay_s,
            max_wait_s=MAX_WAIT_S,
            attempt_s=self.attempt_s,
        )


def half_jitter(planned_s: float) -> float:
    """Return a delay between 0.5 and 1.5 times the planned one."""
    return planned_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients, no secret


class DirectLLM:
    """``LLMClient`` for one provider. ``before_attempt`` is called before each attempt and may raise."""

    def __init__(
        self,
        backend: ProviderAdapter,
        *,
        window: RetryWindow | None = None,
        before_attempt: Callable[[], None] = lambda: None,
    ) -> None:
        self._backend = backend
        self._retrier = Retrier((window or RetryWindow()).policy, nullcontext(), jitter=half_jitter)
        self._before_attempt = before_attempt
        self._prices = Prices()

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Send a request.

        Raises:
            LLMUnavailable, LLMRejected, LLMOutputUnusable: there is no usable reply.
            ReplyNotCached: the request asks for a cached reply, and there is no cache.
        """
        if request.cache_only:
            raise ReplyNotCached

        async def attempt() -> RawReply:
            self._before_attempt()
            return await self._backend.send(request, request.params)

        raw = await self._retrier.run(attempt)
        usage, tokens = usage_of(raw, request.model, self._prices), token_counts(raw)
        try:
            if raw.finish is FinishReason.LENGTH:
                raise LLMOutputUnusable(UnusableKind.TRUNCATED, "the reply is truncated")
            # A verdict must be a boolean. A script's own classes are parsed as leniently as they declare.
            parsed = read_reply(raw, request.schema, purpose=request.purpose)
        except LLMOutputUnusable as error:
            error.usage, error.tokens = usage, tokens
            raise
        return LLMReply(
            text=raw.text,
            parsed=parsed,
            model=raw.model or request.model,
            usage=usage,
            text_only=raw.text_only,
            request_format=format_name(raw.request_format),
            tokens=tokens,
        )

    async def aclose(self) -> None:
        await self._backend.aclose()
