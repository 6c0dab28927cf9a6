"""Figures of a forecast: calls, tokens and cost, as low, expected and high values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Final

USD_PLACES: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedUsage:
    """Calls, tokens and cost of requests. ``cached_calls`` are answered from a cache at no cost.

    ``usd`` and ``usd_batch`` (at the price of the provider's batch API) are None if a price is unknown.
    """

    calls: float = 0.0
    cached_calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    usd: float | None = 0.0
    usd_batch: float | None = 0.0

    def __add__(self, other: EstimatedUsage) -> EstimatedUsage:
        return EstimatedUsage(
            calls=self.calls + other.calls,
            cached_calls=self.cached_calls + other.cached_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=_sum(self.usd, other.usd),
            usd_batch=_sum(self.usd_batch, other.usd_batch),
        )

    def times(self, factor: float) -> EstimatedUsage:
        return EstimatedUsage(
            calls=self.calls * factor,
            cached_calls=self.cached_calls * factor,
            input_tokens=self.input_tokens * factor,
            output_tokens=self.output_tokens * factor,
            usd=None if self.usd is None else self.usd * factor,
            usd_batch=None if self.usd_batch is None else self.usd_batch * factor,
        )


FIGURES: Final = ("calls", "cached_calls", "input_tokens", "output_tokens", "usd", "usd_batch")


@dataclass(slots=True)
class UsageByRole:
    """Load of one simulated run, by role."""

    by_role: dict[str, EstimatedUsage] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)

    def add(self, role: str, load: EstimatedUsage) -> None:
        self.by_role[role] = self.by_role.get(role, EstimatedUsage()) + load

    @property
    def total(self) -> EstimatedUsage:
        return total_of(self.by_role.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Low, expected and high load of a run. ``roles`` has the expected load of each role.

    ``past_runs`` is the number of past results of the same judge file that the forecast uses. ``unknown_pages`` is the
    number of cited pages without a capture. ``unpriced`` lists models without a known price. ``problem`` explains a
    missing or poor forecast.
    """

    low: EstimatedUsage
    expected: EstimatedUsage
    high: EstimatedUsage
    roles: Mapping[str, EstimatedUsage] = field(default_factory=dict)
    unpriced: frozenset[str] = frozenset()
    past_runs: int = 0
    unknown_pages: int = 0
    problem: str | None = None

    def __add__(self, other: Forecast) -> Forecast:
        names = {**self.roles, **other.roles}
        return Forecast(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            high=self.high + other.high,
            roles={
                name: self.roles.get(name, EstimatedUsage()) + other.roles.get(name, EstimatedUsage()) for name in names
            },
            unpriced=self.unpriced | other.unpriced,
            past_runs=self.past_runs + other.past_runs,
            unknown_pages=self.unknown_pages + other.unknown_pages,
            problem=self.problem or other.problem,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the forecast as JSON: each figure as ``{low, expected, high}``, or null if a price is unknown."""
        return {
            **{name: self._figure(name) for name in FIGURES},
            "roles": {
                role: {name: _rounded(name, getattr(load, name)) for name in FIGURES}
                for role, load in sorted(self.roles.items())
            },
            "unpriced_models": sorted(self.unpriced),
            "past_runs": self.past_runs,
            "unknown_pages": self.unknown_pages,
            "problem": self.problem,
        }

    def _figure(self, name: str) -> dict[str, float | None] | None:
        values = {end: getattr(getattr(self, end), name) for end in ("low", "expected", "high")}
        if None in values.values():
            return None
        return {end: _rounded(name, value) for end, value in values.items()}


EMPTY_FORECAST: Final = Forecast(low=EstimatedUsage(), expected=EstimatedUsage(), high=EstimatedUsage())


def forecast_from_runs(likely: Sequence[UsageByRole], bounds: Iterable[UsageByRole]) -> Forecast:
    """Return the forecast from simulated runs.

    ``expected`` is the mean of the ``likely`` runs; ``low`` and ``high`` are the minimum and maximum of all runs.
    """
    every = [tally.total for tally in (*likely, *bounds)]
    roles = {role for tally in likely for role in tally.by_role}
    share = 1 / len(likely)
    return Forecast(
        low=_combine(min, every),
        expected=total_of(tally.total for tally in likely).times(share),
        high=_combine(max, every),
        roles={
            role: total_of(tally.by_role.get(role, EstimatedUsage()) for tally in likely).times(share) for role in roles
        },
        unpriced=frozenset(model for tally in likely for model in tally.unpriced),
    )


def scale_to_calls(forecast: Forecast, calls: float) -> Forecast:
    """Scale a forecast to the number of calls of past runs. The range from low to high is only widened."""
    if not forecast.expected.calls:
        return forecast
    expected = forecast.expected.times(calls / forecast.expected.calls)
    roles = {role: load.times(calls / forecast.expected.calls) for role, load in forecast.roles.items()}
    low, high = _combine(min, [forecast.low, expected]), _combine(max, [forecast.high, expected])
    return replace(forecast, low=low, expected=expected, high=high, roles=roles)


def total_of(loads: Iterable[EstimatedUsage]) -> EstimatedUsage:
    return reduce(add, loads, EstimatedUsage())


def _combine(of: Callable[[list[float]], float], loads: Sequence[EstimatedUsage]) -> EstimatedUsage:
    values: dict[str, Any] = {}
    for name in FIGURES:
        estimates = [getattr(load, name) for load in loads]
        values[name] = None if None in estimates else of(estimates)
    return EstimatedUsage(**values)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _rounded(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if name.startswith("usd"):
        return round(value, USD_PLACES)
    return round(value) if name.endswith("tokens") else round(value, 1)
