"""Money for model calls: a purse is asked before a request is sent, and told afterwards what it cost.

``Budget`` is the purse of one process. The service has one that all workers share (``app.jobs.ledger``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from judges.errors import LLMBudgetExceeded
from judges.llm.pricing import price_of
from rubrics.verdict import Usage

log = logging.getLogger(__name__)

_CHARS_PER_TOKEN: Final = 3
_TOKENS_PER_IMAGE: Final = 1_500
_REPLY_TOKENS: Final = 1_500


class Purse(Protocol):
    """Where the money for requests comes from. Every ``reserve`` that returns is followed by one ``settle``."""

    async def reserve(self, usd: float) -> None:
        """Set aside what a request will likely cost, when it is about to be sent.

        Raises:
            LLMBudgetExceeded: there is not so much left.
        """

    def settle(self, reserved_usd: float, usage: Usage, model: str, role: str) -> None:
        """Replace what was set aside by what the reply of ``model`` did cost, whether it could be used or not.

        ``role`` is what the request was for (``judges.llm.roles``).
        """


class Budget:
    """``max_usd`` of money, and ``spent_usd`` of it up to now. A reply without a price cannot be counted.

    Requests already under way are not called back, so a run may end above its limit by what was in flight.
    """

    def __init__(self, max_usd: float) -> None:
        self._max_usd = max_usd
        self._warned = False
        self.spent_usd = 0.0

    async def reserve(self, usd: float) -> None:
        """Raises LLMBudgetExceeded when the money is spent; sets nothing aside."""
        if self.spent_usd >= self._max_usd:
            raise LLMBudgetExceeded(f"the budget of {self._max_usd:g} USD is spent")

    def settle(self, reserved_usd: float, usage: Usage, model: str, role: str) -> None:
        if usage.usd is not None:
            self.spent_usd += usage.usd
        elif not self._warned:
            self._warned = True
            log.warning("llm cost unknown, the budget does not bind", extra={"model": model})


def likely_usd(model: str, messages: Sequence[Mapping[str, Any]]) -> float:
    """What a request will cost, rather guessed too high; 0 for a model without a known price."""
    price = price_of(model)
    if price is None:
        return 0.0
    parts = [part for message in messages for part in _parts(message.get("content"))]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    tokens = sum(map(len, texts)) // _CHARS_PER_TOKEN + _TOKENS_PER_IMAGE * (len(parts) - len(texts))
    return price.usd(input_tokens=tokens, output_tokens=_REPLY_TOKENS)


def _parts(content: Any) -> Sequence[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
