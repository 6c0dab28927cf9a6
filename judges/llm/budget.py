"""A spending limit that several clients may share: once it is reached, nothing more is asked.

Requests already under way are not called back, so a run may end above its limit by what was in flight.
"""

from __future__ import annotations

import logging

from judges.errors import LLMBudgetExceeded
from rubrics.verdict import Usage

log = logging.getLogger(__name__)


class Budget:
    """``max_usd`` of money, and ``spent_usd`` of it up to now. A reply without a price cannot be counted."""

    def __init__(self, max_usd: float) -> None:
        self._max_usd = max_usd
        self._warned = False
        self.spent_usd = 0.0

    def check(self) -> None:
        """Raises LLMBudgetExceeded when the money is spent. To be called when a request is about to be sent."""
        if self.spent_usd >= self._max_usd:
            raise LLMBudgetExceeded(f"the budget of {self._max_usd:g} USD is spent")

    def count(self, usage: Usage, model: str) -> None:
        """Add what a reply of ``model`` cost, whether it could be used or not."""
        if usage.usd is not None:
            self.spent_usd += usage.usd
        elif not self._warned:
            self._warned = True
            log.warning("llm cost unknown, the budget does not bind", extra={"model": model})
