"""What runs of step benchmarks came to, both suites in one shape, and what was published for the same split. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

MEASURES: Mapping[str, str] = {
    "element": "Element accuracy",
    "operation": "Operation F1",
    "step": "Step success",
}
MEANS: Mapping[str, str] = {"micro": "mean over steps", "macro": "mean over tasks"}
_FULL = {"element": "element_accuracy", "operation": "operation_f1", "step": "step_success"}
_FLAT = {"element": "element_accuracy", "operation": "operation_token_f1", "step": "step_success"}
_NO_SPLIT = "split not known yet"

Figures: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""``figures["micro"]["element"]``, 0 to 1; None where steps that were not judged could still change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A row of a table of figures: a website, a domain, a policy or a reading."""

    name: str
    figures: Figures
    task_success: float | None
    steps: int | None
    tasks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A run with what it came to so far. ``result`` is None until it has ended; then figures are what the run knows."""

    run: Mapping[str, Any]
    result: Mapping[str, Any] | None
    split: str
    model: str
    figures: Figures
    task_success: float | None

    @property
    def usd(self) -> float | None:
        usage = (self.result or {}).get("usage") or {}
        usd = usage.get("usd")
        return None if usd is None else float(usd)

    @property
    def not_judged(self) -> int:
        return int(self.run["progress"]["not_judged"])

    def interval(self, mean: str, measure: str) -> Mapping[str, float] | None:
        """The 95 % interval of one figure, if the run tells."""
        found = ((self.result or {}).get("intervals_95") or {}).get(mean) or {}
        return found.get(measure) or found.get(_FULL[measure])

    def bounds(self, mean: str, measure: str) -> tuple[float, float] | None:
        """Where a figure lies whatever the steps that were not judged turn out to be."""
        bounds = (self.result or {}).get("bounds") or {}
        low, high = (_figure(bounds.get(end) or {}, mean, measure) for end in ("low", "high"))
        return None if low is None or high is None else (low, high)


def suite_run(run: Mapping[str, Any], result: Mapping[str, Any] | None) -> SuiteRun:
    """A run and its result in one shape, whichever suite it is of."""
    order, means = run["order"], run["means"]
    told = result or {}
    splits = [told.get("split")] if told.get("split") else told.get("splits") or [order.get("split")]
    if result is None:
        micro = {"element": means["element_acc"], "operation": means["action_f1"], "step": means["step_acc"]}
        figures: Figures = {"micro": micro, "macro": dict.fromkeys(MEASURES)}
    else:
        figures = _figures(result)
    answers = order.get("predictions") or order.get("answers")
    model = told.get("model") or run.get("model") or order.get("model")
    return SuiteRun(
        run=run,
        result=result,
        split=", ".join(str(one) for one in splits if one) or _NO_SPLIT,
        model=str(model or (f"answers of {answers}" if answers else "the service's own")),
        figures=figures,
        task_success=told.get("task_success"),
    )


def by_split(runs: Iterable[SuiteRun]) -> Mapping[str, Sequence[SuiteRun]]:
    """The runs of each split, those with the most step success first."""
    found: dict[str, list[SuiteRun]] = {}
    for run in runs:
        found.setdefault(run.split, []).append(run)
    for members in found.values():
        members.sort(key=lambda one: -(one.figures["macro"]["step"] or one.figures["micro"]["step"] or 0.0))
    return dict(sorted(found.items()))


def parts(result: Mapping[str, Any], name: str) -> list[Part]:
    """The rows of ``websites``, ``domains``, ``policies`` or ``readings``; none where a suite has no such table."""
    return [
        Part(
            name=key,
            figures=_figures(value),
            task_success=value.get("task_success"),
            steps=value.get("steps"),
            tasks=value.get("tasks"),
        )
        for key, value in (result.get(name) or {}).items()
    ]


def published(run: SuiteRun) -> Sequence[Mapping[str, Any]]:
    """The rows that were published for the run's split, in percent."""
    return (run.result or {}).get("published") or ()


def _figures(values: Mapping[str, Any]) -> Figures:
    return {mean: {measure: _figure(values, mean, measure) for measure in MEASURES} for mean in MEANS}


def _figure(values: Mapping[str, Any], mean: str, measure: str) -> float | None:
    """One figure, under whichever of three names a suite writes it."""
    grouped = values.get(mean)
    if isinstance(grouped, Mapping):
        found = grouped.get(measure, grouped.get(_FULL[measure]))
    else:
        found = values.get(f"{_FLAT[measure]}_{mean}")
    return None if found is None else float(found)
