"""What one step of a benchmark came to, as it is journalled, shown and reported.

A record is JSON. Every suite fills in what is below and adds its own; ``trace`` holds what is long (prompts, raw
outputs, options), and is kept out of memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

Record: TypeAlias = Mapping[str, Any]
"""Keys: ``id`` (unique in the data), ``position``, ``task_id``, ``status``, ``reason``, ``detail``, ``element_acc``,
``action_f1``, ``step_acc`` (None unless scored), ``usage`` and ``trace``."""

TRACE = "trace"


class StepStatus(StrEnum):
    """What is known about a step."""

    SCORED = "scored"
    SKIPPED = "skipped"
    """Left out of every mean by the suite's rules; ``reason`` says by which."""
    NOT_JUDGED = "not_judged"
    """We did not find out: it counts in the bounds and never as a zero."""


def without_trace(record: Record) -> dict[str, Any]:
    """What stays in memory."""
    return {name: value for name, value in record.items() if name != TRACE}


def is_settled(record: Record) -> bool:
    """Whether asking again could change nothing."""
    return bool(record["status"] != StepStatus.NOT_JUDGED)
