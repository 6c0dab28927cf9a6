"""Published aggregate of Mind2Web (contracts/mind2web.md, 5).

The keys are the published ones, including the spelling ``marco_``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judges.suites.metrics import StepScore, error_ratio, grouped, macro, mean, micro
from judges.suites.mind2web.errors import NoPlayedSteps

OFFICIAL_KEYS = (
    "element_acc",
    "action_f1",
    "step_acc",
    "marco_element_acc",
    "marco_action_f1",
    "marco_step_acc",
    "error_ratio",
    "acc_per_website",
)


def official_results(steps: Sequence[StepScore], *, compat_trailing: bool = False) -> dict[str, Any]:
    """Return the figures of steps that are all judged, in the order of the data.

    ``compat_trailing``: exclude trailing steps without a positive from means over tasks. The published loop has this
    effect, because it updates these means only after a step that was played.

    Raises:
        NoPlayedSteps: ``compat_trailing`` is set and no step was played.
    """
    counted = _until_last_played(steps) if compat_trailing else steps
    by_task = grouped(counted, lambda step: step.task_id)
    over_steps, over_tasks = micro(steps), macro(by_task.values())
    return {
        "element_acc": over_steps.element,
        "action_f1": over_steps.operation,
        "step_acc": over_steps.step,
        "marco_element_acc": over_tasks.element,
        "marco_action_f1": over_tasks.operation,
        "marco_step_acc": over_tasks.step,
        "error_ratio": error_ratio(by_task.values()),
        "acc_per_website": _acc_per_website(counted),
    }


def _until_last_played(steps: Sequence[StepScore]) -> Sequence[StepScore]:
    last = max((place for place, step in enumerate(steps) if step.played), default=None)
    if last is None:
        raise NoPlayedSteps("no step has a positive candidate within top-k: the published evaluation crashes on this")
    return steps[: last + 1]


def _acc_per_website(steps: Sequence[StepScore]) -> dict[str, list[float | int]]:
    """Return the mean step accuracy over the tasks of each website, and the number of tasks."""
    sites: dict[str, list[float | int]] = {}
    for name, members in grouped(steps, lambda step: step.website).items():
        tasks = [micro(task).step for task in grouped(members, lambda step: step.task_id).values()]
        sites[name] = [mean(tasks), len(tasks)]
    return sites
