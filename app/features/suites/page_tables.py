"""CSV tables of suite runs. Values are fractions, while the pages show percent. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.csv_tables import Cell
from app.features.suites.page_figures import MEANS, MEASURES, Part, SuiteRun, published

_PUBLISHED: Mapping[str, str] = {"element": "element_acc", "operation": "op_f1", "step": "step_success"}
_BY_MEAN = tuple((mean, measure) for mean in MEANS for measure in MEASURES)
_FIGURES = tuple(f"{measure}_{mean}" for mean, measure in _BY_MEAN)
RUNS_CSV = ("suite", "id", "split", "model", "status", *_FIGURES, *(f"{name}_{end}" for name in _FIGURES for end in
            ("lowest", "highest")), "task_success", "steps_done", "steps_total", "not_judged", "usd",
            "created_at")  # fmt: skip
PARTS_CSV = ("name", *_FIGURES, "task_success", "steps", "tasks")
_ENDS = ("", "_low_95", "_high_95", "_lowest", "_highest")
FIGURES_CSV = ("mean", *(f"{measure}{end}" for measure in MEASURES for end in _ENDS))


def run_rows(suites: Mapping[str, Mapping[str, Sequence[SuiteRun]]]) -> Iterator[list[Cell]]:
    """Yield every run by suite and split. Published rows follow the runs of a split."""
    for suite, splits in suites.items():
        for split, runs in splits.items():
            yield from (_run_row(one) for one in runs)
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
    for one in published(run):
        yield [f"{_system(one)} (published)", *(cell for value in _published(one) for cell in (value, *[None] * 4))]


def part_row(part: Part) -> list[Cell]:
    """Return the row of a website, domain, policy or reading."""
    figures = [part.figures[mean][measure] for mean, measure in _BY_MEAN]
    return [part.name, *figures, part.task_success, part.steps, part.tasks]


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
    """Convert percent to a fraction."""
    return None if percent is None else round(percent / 100, 6)
