"""Several seeds in one run: every step is judged once per seed, and figures are means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Final, Generic, TypeVar

from app.features.suites.records import Record
from app.features.suites.step_loop import Plan, SuiteModel
from judges.errors import LLMError

S = TypeVar("S")
STRIDE: Final = 10_000_000
"""Distance between the positions of a step in two seeds. Data have fewer steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededStep(Generic[S]):
    """Step in one of several seeds."""

    nth: int
    step: S


class SeedsPlan(Generic[S]):
    """Plan that judges every step once per seed. ``plans`` are those of the seeds."""

    def __init__(self, plans: Mapping[int, Plan[S]]) -> None:
        self._seeds = tuple(plans)
        self._plans = tuple(plans.values())

    @property
    def total(self) -> int:
        return sum(plan.total for plan in self._plans)

    def steps(self) -> Iterator[SeededStep[S]]:
        for nth, plan in enumerate(self._plans):
            for step in plan.steps():
                yield SeededStep(nth=nth, step=step)

    def step_id(self, step: SeededStep[S]) -> str:
        return f"{self._plans[step.nth].step_id(step.step)}@{self._seeds[step.nth]}"

    async def judge(self, step: SeededStep[S], suite_model: SuiteModel) -> Record:
        return self._seeded(step, await self._plans[step.nth].judge(step.step, suite_model))

    def not_judged(self, step: SeededStep[S], error: LLMError) -> Record:
        return self._seeded(step, self._plans[step.nth].not_judged(step.step, error))

    def _seeded(self, step: SeededStep[S], record: Record) -> Record:
        return {
            **record,
            "id": self.step_id(step),
            "sample_id": record["id"],
            "seed": self._seeds[step.nth],
            "position": record["position"] + step.nth * STRIDE,
        }


def data_position(record: Record) -> int:
    return int(record["position"]) % STRIDE


def data_id(record: Record) -> str:
    """Return the id of a step in the data."""
    return str(record.get("sample_id") or record["id"])


def figures_by_seed(
    seeds: Sequence[int], records: Sequence[Record], figures: Callable[[int, Sequence[Record]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the headline figures of each seed, and their spread. ``figures`` computes those of the records of a seed.

    ``sd`` is the sample standard deviation over seeds. A figure with steps that were not judged is None.
    """
    by_seed = {
        str(seed): headline(figures(seed, [record for record in records if record["seed"] == seed])) for seed in seeds
    }
    names = next(iter(by_seed.values()))
    return {
        "seeds": list(seeds),
        "by_seed": by_seed,
        "over_seeds": {name: _spread([values[name] for values in by_seed.values()]) for name in names},
    }


def headline(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the means over steps and tasks, and task success, by name."""
    if "micro" in metrics:
        flat = {f"{name}_{mean}": value for mean in ("micro", "macro") for name, value in metrics[mean].items()}
    else:
        flat = {name: value for name, value in metrics.items() if name.endswith(("_micro", "_macro"))}
    return {**flat, "task_success": metrics.get("task_success")}


def _spread(values: Sequence[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return {"mean": fmean(known), "sd": stdev(known) if len(known) > 1 else 0.0, "min": min(known), "max": max(known)}
