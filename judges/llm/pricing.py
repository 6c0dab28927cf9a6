"""What a reply cost, from a table that is data (``prices.toml``). An unknown model has no price, not a price of 0."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

_BEDROCK = re.compile(r"^(?:\w+\.)*anthropic\.|-v\d+(?::\d+)?$")
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens; ``cached_input`` for tokens read from the provider's prefix cache.

    ``batch_input`` and ``batch_output`` are those of the provider's batch interface; None: it has none, or we do not
    know of it.
    """

    input: float
    output: float
    cached_input: float | None = None
    batch_input: float | None = None
    batch_output: float | None = None

    def usd(self, *, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
        """The cost of replies; ``cached_tokens`` are among the ``input_tokens``."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = input_tokens - cached_tokens
        return (fresh * self.input + cached_tokens * cached_price + output_tokens * self.output) / _MILLION

    def batch_usd(self, *, input_tokens: float, output_tokens: float) -> float | None:
        """The same by the batch interface, None where there is no price for it."""
        if self.batch_input is None or self.batch_output is None:
            return None
        return (input_tokens * self.batch_input + output_tokens * self.batch_output) / _MILLION


def price_of(model: str) -> Price | None:
    """The price of a model by its bare name, None where it is not known.

    >>> price_of("gpt-4o-2024-08-06") == price_of("gpt-4o"), price_of("my-own-model")
    (True, None)
    """
    bare = _BEDROCK.sub("", model.rsplit("/", 1)[-1].lower())
    prices = _prices()
    return prices.get(bare) or prices.get(_SNAPSHOT.sub("", bare))


def prices_as_of() -> date:
    """The day on which the table was last compared with the providers' lists."""
    day: date = _table()["as_of"]
    return day


@cache
def _prices() -> Mapping[str, Price]:
    return {model: Price(**numbers) for model, numbers in _table()["models"].items()}


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("judges.llm").joinpath("prices.toml").read_text("utf-8"))
