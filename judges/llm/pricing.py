"""Model prices, and budgets of model calls.

Prices are in the shipped table (``prices.toml``) and in rows from the user. An unknown model has no price, never 0.

A budget reserves the likely cost before a request is sent and settles the actual cost after it. ``ProcessBudget`` is
the budget of one process. The service has a budget that all workers share (``app.jobs.budget_ledger``).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judges.errors import LLMBudgetExceeded
from rubrics.verdict import Usage

_BEDROCK = re.compile(r"^(?:\w+\.)*anthropic\.|-v\d+(?::\d+)?$")
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")
_MILLION = 1_000_000
_EXAMPLE: Final = '"my-model" = { input = 0.10, output = 0.50 }'
_FORM: Final = f"use the path of a TOML file, or TOML such as {_EXAMPLE}, or the same as a JSON object"


class InvalidPrices(ValueError):
    """A price table that cannot be read. The message names the row, the problem and the fix."""


_Amount: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LongContext(_Row):
    """Price factors for requests with more than ``above`` input tokens."""

    above: _Amount
    input: _Amount
    output: _Amount


class Price(_Row):
    """List price of a model in US dollars per million tokens, as described in ``prices.toml``."""

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    cache_write: _Amount | None = None
    long_context: LongContext | None = None
    vendor: str = ""
    shutdown: date | None = None
    source: str = ""
    checked: date | None = None

    def usd(
        self, *, input_tokens: float, output_tokens: float, cached_tokens: float = 0, cache_write_tokens: float = 0
    ) -> float:
        """Return the cost of one request. ``input_tokens`` includes ``cached_tokens`` and ``cache_write_tokens``."""
        read_price = self.input if self.cached_input is None else self.cached_input
        write_price = self.input if self.cache_write is None else self.cache_write
        fresh = max(0.0, input_tokens - cached_tokens - cache_write_tokens)
        spent_in = fresh * self.input + cached_tokens * read_price + cache_write_tokens * write_price
        spent_out = output_tokens * self.output
        if self.long_context is not None and input_tokens > self.long_context.above:
            spent_in *= self.long_context.input
            spent_out *= self.long_context.output
        return (spent_in + spent_out) / _MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """Price table. ``rows`` from the user override the shipped rows."""

    rows: tuple[tuple[str, Price], ...] = ()

    def of(self, model: str) -> Price | None:
        """Return the price of a model, None if it is unknown.

        A provider or vendor before the name is ignored. A snapshot without its own row has the price of its base name.

        >>> Prices().of("gpt-4o-2024-08-06") == Prices().of("gpt-4o"), Prices().of("my-own-model")
        (True, None)
        """
        model_name = model.rsplit("/", 1)[-1].lower()
        base_name = _BEDROCK.sub("", model_name)
        own, shipped = {name.lower(): price for name, price in self.rows}, shipped_prices()
        for name in (model.lower(), model_name, base_name, _SNAPSHOT.sub("", base_name)):
            listed = own.get(name) or shipped.get(name)
            if listed is not None:
                return listed
        return None

    def names(self, *, on: date) -> tuple[str, ...]:
        """Return the models that are not shut down on a day."""
        return tuple(name for name, price in self.all().items() if price.shutdown is None or price.shutdown > on)

    def all(self) -> Mapping[str, Price]:
        """Return all rows by model name."""
        return {**shipped_prices(), **dict(self.rows)}

    @classmethod
    def read(cls, value: str) -> Self:
        """Parse rows from the user: the path of a TOML or JSON file, inline TOML, or an inline JSON object.

        Raises:
            InvalidPrices: the value is none of these, or a row is invalid.
        """
        trimmed = value.strip()
        text = trimmed
        if not trimmed.startswith("{") and ("=" not in trimmed or _is_file(trimmed)):
            try:
                text = Path(trimmed).expanduser().read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidPrices(f"{trimmed[:200]!r} cannot be read ({type(error).__name__}): {_FORM}") from None
        try:
            table = json.loads(text) if text.startswith("{") else tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidPrices(f"not valid TOML or JSON ({error}): {_FORM}") from None
        rows = table.get("models", {name: row for name, row in table.items() if name != "as_of"})
        if not isinstance(rows, Mapping) or not rows:
            raise InvalidPrices(f"no row for any model: {_FORM}")
        return cls(tuple((str(name), _price(str(name), row)) for name, row in rows.items()))


def price_of(model: str) -> Price | None:
    """Return the shipped price of a model, None if it is unknown."""
    return Prices().of(model)


def prices_as_of() -> date:
    """Return the date when the shipped table was last compared with the providers' price lists."""
    day: date = _table()["as_of"]
    return day


@cache
def shipped_prices() -> Mapping[str, Price]:
    """Return the shipped rows by model name."""
    return {model: _price(model, row) for model, row in _table()["models"].items()}


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("judges.llm").joinpath("prices.toml").read_text("utf-8"))


def _price(model: str, row: Any) -> Price:
    """Parse one row.

    Raises:
        InvalidPrices: the row is invalid.
    """
    try:
        return Price.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ": ".join([f'row "{model}"', *map(str, first["loc"])])
        columns = ", ".join(Price.model_fields)
        raise InvalidPrices(
            f"{place}: {first['msg'].lower()}; a row has the columns {columns}, for example {_EXAMPLE}"
        ) from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


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
