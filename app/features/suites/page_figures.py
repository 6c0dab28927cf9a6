"""Figures of suite runs in one shape for both suites, and published figures for the same split. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.csv_tables import Cell

MEASURES: Mapping[str, str] = {
    "element": "Element accuracy",
    "operation": "Operation F1",
    "step": "Step success",
}
MEANS: Mapping[str, str] = {"micro": "mean over steps", "macro": "mean over tasks"}
_NAMES = {
    "element": ("element_accuracy",),
    "operation": ("operation_f1", "action_accuracy", "operation_token_f1"),
    "step": ("step_success",),
}
"""Names of a measure, which the suites write with or without its mean."""
_NO_SPLIT = "split unknown"

Figures: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""``figures["micro"]["element"]`` in 0..1, or None if unjudged steps could change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakdownRow:
    """Row of a table of figures: a website, domain, policy or reading."""

    name: str
    figures: Figures
    task_success: float | None
    steps: int | None
    tasks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """Run with its current figures. ``result`` is None until the run has ended."""

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

    @property
    def measures(self) -> Mapping[str, str]:
        """Labels of the measures. The metric ``action``, the default of the guide, has no F1 of operations."""
        known = self.result or self.run["order"]
        metric = known.get("metric") or ("action" if known.get("protocol") == "guide" else None)
        return {**MEASURES, "operation": "Action accuracy"} if metric == "action" else MEASURES

    def interval(self, mean: str, measure: str) -> Mapping[str, float] | None:
        """Return the 95 % interval of a figure, if the result has it."""
        intervals = ((self.result or {}).get("intervals_95") or {}).get(mean) or {}
        return next((intervals[name] for name in (measure, *_NAMES[measure]) if intervals.get(name)), None)

    def bounds(self, mean: str, measure: str) -> tuple[float, float] | None:
        """Return the bounds of a figure for all possible outcomes of unjudged steps."""
        bounds = (self.result or {}).get("bounds") or {}
        low, high = (figure(bounds.get(end) or {}, mean, measure) for end in ("low", "high"))
        return None if low is None or high is None else (low, high)


def suite_run(run: Mapping[str, Any], result: Mapping[str, Any] | None) -> SuiteRun:
    """Convert a run and its result of either suite."""
    order, means = run["order"], run["means"]
    known = result or {}
    splits = [known.get("split")] if known.get("split") else known.get("splits") or [order.get("split")]
    if result is None:
        micro = {"element": means["element_acc"], "operation": means["action_f1"], "step": means["step_acc"]}
        figures: Figures = {"micro": micro, "macro": dict.fromkeys(MEASURES)}
    else:
        figures = _figures(result)
    guide = " · guide" if (known.get("protocol") or order.get("protocol")) == "guide" else ""
    answers = order.get("predictions") or order.get("answers")
    model = known.get("model") or run.get("model") or order.get("model")
    return SuiteRun(
        run=run,
        result=result,
        split=(", ".join(str(split) for split in splits if split) or _NO_SPLIT) + guide,
        model=str(model or (f"answers of {answers}" if answers else "default model")),
        figures=figures,
        task_success=known.get("task_success"),
    )


def by_split(runs: Iterable[SuiteRun]) -> Mapping[str, Sequence[SuiteRun]]:
    """Group runs by split, highest step success first."""
    grouped: dict[str, list[SuiteRun]] = {}
    for run in runs:
        grouped.setdefault(run.split, []).append(run)
    for members in grouped.values():
        members.sort(key=lambda run: -(run.figures["macro"]["step"] or run.figures["micro"]["step"] or 0.0))
    return dict(sorted(grouped.items()))


def breakdown(result: Mapping[str, Any], name: str) -> list[BreakdownRow]:
    """Return the rows of ``websites``, ``domains``, ``policies`` or ``readings``; empty without such a table."""
    return [
        BreakdownRow(
            name=key,
            figures=_figures(value),
            task_success=value.get("task_success"),
            steps=value.get("steps"),
            tasks=value.get("tasks"),
        )
        for key, value in (result.get(name) or {}).items()
    ]


def published(run: SuiteRun) -> Sequence[Mapping[str, Any]]:
    """Return the published rows for the split of the run, in percent."""
    return (run.result or {}).get("published") or ()


def _figures(values: Mapping[str, Any]) -> Figures:
    return {mean: {measure: figure(values, mean, measure) for measure in MEASURES} for mean in MEANS}


def figure(values: Mapping[str, Any], mean: str, measure: str) -> float | None:
    """Return one figure of a result. The suites use different names for it."""
    grouped = values.get(mean)
    if isinstance(grouped, Mapping):
        found = next((grouped[name] for name in (measure, *_NAMES[measure]) if name in grouped), None)
    else:
        names = (f"{name}_{mean}" for name in _NAMES[measure])
        found = next((values[name] for name in names if name in values), None)
    return None if found is None else float(found)


_PUBLISHED: Mapping[str, str] = {"element": "element_acc", "operation": "op_f1", "step": "step_success"}
_BY_MEAN = tuple((mean, measure) for mean in MEANS for measure in MEASURES)
_FIGURES = tuple(f"{measure}_{mean}" for mean, measure in _BY_MEAN)
RUNS_CSV = ("suite", "id", "split", "model", "status", *_FIGURES, *(f"{name}_{end}" for name in _FIGURES for end in
            ("lowest", "highest")), "task_success", "steps_done", "steps_total", "not_judged", "usd",
            "created_at")  # fmt: skip
BREAKDOWN_CSV = ("name", *_FIGURES, "task_success", "steps", "tasks")
_SUFFIXES = ("", "_low_95", "_high_95", "_lowest", "_highest")
FIGURES_CSV = ("mean", *(f"{measure}{end}" for measure in MEASURES for end in _SUFFIXES))


def run_rows(suites: Mapping[str, Mapping[str, Sequence[SuiteRun]]]) -> Iterator[list[Cell]]:
    """Yield every run by suite and split. Published rows follow the runs of a split."""
    for suite, splits in suites.items():
        for split, runs in splits.items():
            yield from (_run_row(run) for run in runs)
            for row in published(runs[0]):
                yield [
                    suite, None, split, _system(row), "published", *(None for _ in MEASURES), *_published(row),
                    *(None for _ in range(2 * len(_FIGURES))), _fraction(row.get("task_success")),
                    *(None for _ in range(5)),
                ]  # fmt: skip


def figure_rows(run: SuiteRun) -> Iterator[list[Cell]]:
    """Yield the figures of a run per mean, with 95 % intervals and bounds for unjudged steps."""
    for mean, label in MEANS.items():
        row: list[Cell] = [label]
        for measure in MEASURES:
            interval = run.interval(mean, measure) or {}
            lowest, highest = run.bounds(mean, measure) or (None, None)
            row += [run.figures[mean][measure], interval.get("low"), interval.get("high"), lowest, highest]
        yield row
    for paper_row in published(run):
        yield [
            f"{_system(paper_row)} (published)",
            *(cell for value in _published(paper_row) for cell in (value, *[None] * 4)),
        ]


def breakdown_cells(row: BreakdownRow) -> list[Cell]:
    """Return the row of a website, domain, policy or reading."""
    figures = [row.figures[mean][measure] for mean, measure in _BY_MEAN]
    return [row.name, *figures, row.task_success, row.steps, row.tasks]


def _run_row(row: SuiteRun) -> list[Cell]:
    run, progress = row.run, row.run["progress"]
    figures = [row.figures[mean][measure] for mean, measure in _BY_MEAN]
    bounds = [end for mean, measure in _BY_MEAN for end in row.bounds(mean, measure) or (None, None)]
    return [
        run["suite"], run["id"], row.split, row.model, run["status"], *figures, *bounds, row.task_success,
        progress["steps_done"], progress["steps_total"], progress["not_judged"], row.usd, run["created_at"],
    ]  # fmt: skip


def _system(row: Mapping[str, Any]) -> str:
    return f"{row['system']} {row['setting']}"


def _published(row: Mapping[str, Any]) -> list[float | None]:
    return [_fraction(row.get(name)) for name in _PUBLISHED.values()]


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else round(percent / 100, 6)
