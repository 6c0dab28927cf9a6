"""Budgets for model calls: reserve the likely cost before a request is sent, settle the actual cost after it.

``ProcessBudget`` is the budget of one process. The service has a budget that all workers share
(``app.jobs.budget_ledger``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from judges.errors import LLMBudgetExceeded
from judges.llm.pricing import Prices
from rubrics.verdict import Usage

_CHARS_PER_TOKEN: Final = 3
_TOKENS_PER_IMAGE: Final = 1_500
_REPLY_TOKENS: Final = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Likely cost of one request. ``usd`` is None if the price of ``model`` is unknown."""

    model: str
    usd: float | None
    tokens: int

    def charge(self, usage: Usage | None) -> tuple[float | None, int]:
        """Return the cost and tokens to charge: those of ``usage``, or the estimate if they are unknown."""
        if usage is None:
            return self.usd, self.tokens
        tokens = usage.input_tokens + usage.output_tokens
        return self.usd if usage.usd is None else usage.usd, self.tokens if usage.calls and not tokens else tokens


class RequestBudget(Protocol):
    """Budget for requests. Call ``settle`` exactly once after every ``reserve`` that returns."""

    async def reserve(self, estimate: Estimate) -> None:
        """Reserve the likely cost of a request that is about to be sent.

        Raises:
            LLMBudgetExceeded: the remaining budget is too small, or the cost is unknown and no other limit applies.
        """

    def settle(self, estimate: Estimate, usage: Usage | None, model: str, role: str) -> None:
        """Replace a reservation with the actual cost of the reply of ``model``, whether usable or not.

        ``usage`` is None if the request timed out or was cancelled, or if its reply was lost. The provider may still
        charge for it, so the budget is charged with the estimate.
        ``role`` is the role of the request (``judges.llm.client``).
        """


class ProcessBudget:
    """Budget of at most ``max_usd`` and ``max_tokens`` (input and output). None: no limit.

    ``usd_option`` is what sets ``max_usd``, for the error message.

    Requests in flight are not cancelled, so a run may exceed its limit by their cost. Only ``max_tokens`` limits a
    model without a known price; if it is not set, requests to such a model are rejected.
    """

    def __init__(
        self, max_usd: float | None, max_tokens: int | None = None, *, usd_option: str = "ASSAY_BUDGET_USD"
    ) -> None:
        self._max_usd = max_usd
        self._usd_option = usd_option
        self._max_tokens = max_tokens
        self.spent_usd = 0.0
        self.used_tokens = 0

    async def reserve(self, estimate: Estimate) -> None:
        """Check the limits. Reserves nothing.

        Raises:
            LLMBudgetExceeded: a limit is reached.
        """
        if self._max_usd is not None and self._max_tokens is None and estimate.usd is None:
            raise LLMBudgetExceeded(unknown_price_message(estimate.model))
        if self._max_usd is not None and self.spent_usd >= self._max_usd:
            raise LLMBudgetExceeded(f"the budget of {self._max_usd:g} USD is spent: raise {self._usd_option}")
        if self._max_tokens is not None and self.used_tokens >= self._max_tokens:
            raise LLMBudgetExceeded(f"the budget of {self._max_tokens} tokens is used up: raise ASSAY_BUDGET_TOKENS")

    def settle(self, estimate: Estimate, usage: Usage | None, model: str, role: str) -> None:
        usd, tokens = estimate.charge(usage)
        self.spent_usd += usd or 0.0
        self.used_tokens += tokens


def unknown_price_message(model: str) -> str:
    """Return the error message for a budget in USD and a model without a known price."""
    return (
        f"the price of {model} is unknown, so a budget in USD cannot limit it: "
        "set its price in ASSAY_PRICES, or limit tokens with ASSAY_BUDGET_TOKENS"
    )


def estimate_cost(model: str, messages: Sequence[Mapping[str, Any]], prices: Prices) -> Estimate:
    """Return the likely cost of a request, with a tendency to overestimate."""
    tokens = estimate_tokens(messages)
    price = prices.of(model)
    usd = None if price is None else price.usd(input_tokens=tokens, output_tokens=_REPLY_TOKENS)
    return Estimate(model=model, usd=usd, tokens=tokens + _REPLY_TOKENS)


def estimate_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the likely number of input tokens, with a tendency to overestimate."""
    parts = [part for message in messages for part in _parts(message.get("content"))]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return sum(map(len, texts)) // _CHARS_PER_TOKEN + _TOKENS_PER_IMAGE * (len(parts) - len(texts))


def _parts(content: Any) -> Sequence[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
