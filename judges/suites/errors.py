"""Errors of benchmark data and files.

JudgeError
└── SuiteError
    ├── DataUnreadable        a file or a field does not have the expected format
    ├── PageUnusable          a page is not XML, or lacks a required element
    └── RankMissing           a step or one of its candidates has no rank
"""

from __future__ import annotations

from judges.errors import JudgeError


class SuiteError(JudgeError):
    """Data, scores, predictions or a template cannot be used, or a file cannot be written. The message names it."""


class DataUnreadable(SuiteError):
    """Malformed data. ``place`` names the position: file, row or task, field."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")


class PageUnusable(SuiteError):
    """The page of a step cannot be represented. The message names the missing element, if any."""


class RankMissing(SuiteError):
    """A step or a candidate has no rank. The message names it."""
