"""A spending limit in front of a client: once it is reached, nothing more is asked.

Requests already under way are not called back, so a run may end above its limit by what was in flight.
"""

from __future__ import annotations

import logging

from judges.errors import LLMBudgetExceeded, LLMError
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from rubrics.verdict import Usage

log = logging.getLogger(__name__)


class BudgetedLLM:
    """Counts what replies cost and refuses once ``max_usd`` is spent. A reply without a price cannot be counted."""

    def __init__(self, inner: LLMClient, *, max_usd: float) -> None:
        self._inner = inner
        self._max_usd = max_usd
        self._warned = False
        self.spent_usd = 0.0

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Ask the client behind.

        Raises:
            LLMBudgetExceeded: the money is spent.
        """
        if self.spent_usd >= self._max_usd:
            raise LLMBudgetExceeded(f"the budget of {self._max_usd:g} USD is spent")
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            self._count(error.usage, request.model)
            raise
        self._count(reply.usage, request.model)
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _count(self, usage: Usage, model: str) -> None:
        if usage.usd is not None:
            self.spent_usd += usage.usd
        elif not self._warned:
            self._warned = True
            log.warning("llm cost unknown, the budget does not bind", extra={"model": model})
