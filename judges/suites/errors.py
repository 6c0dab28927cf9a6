"""Errors of benchmark data.

JudgeError
└── SuiteError
    ├── DataUnreadable    a file or a field does not have the expected format
    └── DataMissing       the file or the split does not exist
"""

from __future__ import annotations

from judges.errors import JudgeError


class SuiteError(JudgeError):
    """Base class of the errors that suites raise."""


class DataUnreadable(SuiteError):
    """Malformed data. ``place`` names the position: file, row or task, field."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")


class DataMissing(SuiteError):
    """No data at the given path, or none for the split."""
