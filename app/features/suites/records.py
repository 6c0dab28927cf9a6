"""Record of one benchmark step, as stored in journals and used for display and reports.

A record is a JSON object. Each suite adds its own keys. ``trace`` contains the long values (prompts, raw outputs,
options) and is not kept in memory.
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
    """Status of a step."""

    SCORED = "scored"
    SKIPPED = "skipped"
    """Excluded from all means by a rule of the suite, which ``reason`` names."""
    NOT_JUDGED = "not_judged"
    """Could not be judged. Counts in the bounds, and never as 0."""


def without_trace(record: Record) -> dict[str, Any]:
    """Return the part of a record that stays in memory."""
    return {name: value for name, value in record.items() if name != TRACE}


def is_final(record: Record) -> bool:
    """Return whether the step needs no further attempt."""
    return bool(record["status"] != StepStatus.NOT_JUDGED)
