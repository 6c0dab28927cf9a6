"""Errors of benchmark data and files.

JudgeError
└── SuiteError
    ├── DataUnreadable        a file or a field does not have the expected format
    ├── DataMissing           the file or the split does not exist
    ├── PageUnusable          a page is not XML, or lacks a required element
    ├── RankMissing           a step or one of its candidates has no rank
    ├── ScoresRejected        a pickle of candidate scores has unexpected content or is too large
    ├── TemplateUnusable      a prompt template is not a list of chat messages
    ├── PredictionsUnusable   a predictions file is not in a published format
    └── NoPlayedSteps         the published figures are undefined because no step was played
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


class PageUnusable(SuiteError):
    """The page of a step cannot be represented. The message names the missing element, if any."""


class RankMissing(SuiteError):
    """A step or a candidate has no rank. The message names it."""


class ScoresRejected(SuiteError):
    """The scores file was rejected. The message names the unexpected content."""


class TemplateUnusable(SuiteError):
    """The prompt template is malformed."""


class PredictionsUnusable(SuiteError):
    """The predictions cannot be scored. The message names the file and the entry."""


class NoPlayedSteps(SuiteError):
    """No step has a positive candidate within top k, so the published evaluation would crash."""
