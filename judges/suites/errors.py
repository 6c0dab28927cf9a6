"""What can be wrong with a benchmark's data.

JudgeError
└── SuiteError
    ├── DataUnreadable    a file, or a field of a row, is not what its format says; names the place
    └── DataMissing       there is no such file, or nothing of the kind in it
"""

from __future__ import annotations

from judges.errors import JudgeError


class SuiteError(JudgeError):
    """Base of everything that the suites raise on purpose."""


class DataUnreadable(SuiteError):
    """Damaged data. ``place`` says where: file, row or task, field."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class DataMissing(SuiteError):
    """No data at the path that was given, or none that belongs to the split."""
