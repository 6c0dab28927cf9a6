"""Comparison of two runs of a suite, paired by step and by task. Pure; numpy is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from judges.analysis.statistics.bootstrap import ratio_intervals
from judges.analysis.statistics.paired import paired
from judges.suites.step_metrics import RESAMPLES, mean

MEASURES: Final = {"element": "element_acc", "operation": "action_f1", "step": "step_acc"}
_MAX_CHANGED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """Scores of one step in both runs: element, operation and step, each in [0, 1].

    ``positions`` are those of the step in both runs.
    """

    id: str
    task_id: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    positions: tuple[int | None, int | None] = (None, None)


def compare_runs(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]], *, seed: int = 0
) -> dict[str, Any]:
    """Compare the records of two runs over the steps that were scored in both. Differences are B - A.

    ``micro`` pairs steps and ``macro`` tasks; their intervals are cluster bootstraps by task. ``p`` is that of a
    sign-flip test over tasks. ``task_success`` counts only tasks whose steps were all scored in both runs.
    """
    a, b = ({str(record["id"]): record for record in records} for records in (first, second))
    shared = [id for id in a if id in b]
    scored = dict.fromkeys(id for id in shared if _is_scored(a[id]) and _is_scored(b[id]))
    pairs = [_pair(id, a[id], b[id]) for id in scored]
    open_tasks = {str(records[id]["task_id"]) for records in (a, b) for id in records if id not in scored}
    return {
        "steps": len(pairs),
        "tasks": len({pair.task_id for pair in pairs}),
        "only_a": len(a) - len(shared),
        "only_b": len(b) - len(shared),
        "not_scored": len(shared) - len(pairs),
        **({} if not pairs else _means(pairs, seed)),
        "task_success": _task_success([pair for pair in pairs if pair.task_id not in open_tasks], seed),
        "changes": _changes(pairs),
    }


def _is_scored(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "scored" and all(record.get(name) is not None for name in MEASURES.values())


def _pair(id: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> StepPair:
    first, second = (tuple(float(record[name]) for name in MEASURES.values()) for record in (a, b))
    positions = (a.get("position"), b.get("position"))
    return StepPair(id=id, task_id=str(a["task_id"]), a=first, b=second, positions=positions)


def _means(pairs: Sequence[StepPair], seed: int) -> dict[str, Any]:
    as_tasks = [
        StepPair(
            id=members[0].task_id,
            task_id=members[0].task_id,
            a=tuple(mean([pair.a[nth] for pair in members]) for nth in range(len(MEASURES))),
            b=tuple(mean([pair.b[nth] for pair in members]) for nth in range(len(MEASURES))),
        )
        for members in _by_task(pairs)
    ]
    return {"micro": _differences(pairs, seed), "macro": _differences(as_tasks, seed)}


def _differences(pairs: Sequence[StepPair], seed: int) -> dict[str, Any]:
    """Return for each measure both means, their difference, its interval and p."""
    import numpy as np

    clusters = _by_task(pairs)
    sums = np.array([[sum(pair.b[nth] - pair.a[nth] for pair in members) for nth in range(len(pairs[0].a))]
                     for members in clusters])  # fmt: skip
    sizes = np.array([len(members) for members in clusters], dtype=float)
    ends = ratio_intervals(sums, sizes, seed=seed, resamples=RESAMPLES)
    names = tuple(MEASURES) if len(pairs[0].a) == len(MEASURES) else ("task",)
    out: dict[str, Any] = {}
    for nth, name in enumerate(names):
        test = paired([float(total) for total in sums[:, nth] / sizes])
        out[name] = {
            "a": mean([pair.a[nth] for pair in pairs]),
            "b": mean([pair.b[nth] for pair in pairs]),
            "difference": float(sums[:, nth].sum() / sizes.sum()),
            "interval_95": {"low": ends[nth][0], "high": ends[nth][1]} if len(clusters) > 1 else None,
            "p": None if test is None else test.sign_flip.p,
        }
    return out


def _task_success(pairs: Sequence[StepPair], seed: int) -> dict[str, Any] | None:
    place = list(MEASURES).index("step")
    tasks = [
        StepPair(
            id=members[0].task_id,
            task_id=members[0].task_id,
            a=(float(all(pair.a[place] for pair in members)),),
            b=(float(all(pair.b[place] for pair in members)),),
        )
        for members in _by_task(pairs)
    ]
    return {"tasks": len(tasks), **_differences(tasks, seed)["task"]} if tasks else None


def _changes(pairs: Sequence[StepPair]) -> dict[str, Any]:
    """Return how many steps succeed in both runs, in one of them or in none, and the first ones that differ."""
    place = list(MEASURES).index("step")
    gained = [_changed(pair) for pair in pairs if pair.b[place] > pair.a[place]]
    lost = [_changed(pair) for pair in pairs if pair.b[place] < pair.a[place]]
    both = sum(pair.a[place] == pair.b[place] == 1.0 for pair in pairs)
    return {
        "both": both,
        "only_a": len(lost),
        "only_b": len(gained),
        "neither": len(pairs) - both - len(lost) - len(gained),
        "lost": lost[:_MAX_CHANGED],
        "gained": gained[:_MAX_CHANGED],
    }


def _changed(pair: StepPair) -> dict[str, Any]:
    return {"id": pair.id, "task_id": pair.task_id, "position_a": pair.positions[0], "position_b": pair.positions[1]}


def _by_task(pairs: Sequence[StepPair]) -> list[list[StepPair]]:
    groups: dict[str, list[StepPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.task_id, []).append(pair)
    return list(groups.values())
