"""Errors of submitted answers.

AnswersError
|- InvalidSubmission    invalid names, texts or metadata, with a list of all problems, or an invalid archive
|- AnswersNotFound      a folder without answers of the agent or task
`- TooManyParts         a report with more citations, lines or sentences than can be bound
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ProblemCode(StrEnum):
    """Kind of a problem. ``too_large`` and ``too_many`` are exceeded limits, the others concern the content."""

    BAD_NAME = "bad_name"
    DUPLICATE = "duplicate"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    NOT_TEXT = "not_text"
    """Not UTF-8, or contains a character that cannot be stored: NUL or an unpaired surrogate."""
    NOT_JSON = "not_json"
    BAD_ARCHIVE = "bad_archive"
    BAD_DOCUMENT = "bad_document"
    """A Word, HTML or PDF file that cannot be converted, or that is not what its name says."""
    BAD_REPLY = "bad_reply"
    """JSON that is not a reply of a known provider, or that contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of a submission. ``path`` is a field (``answers.0.text``), or a file of a folder or archive."""

    path: str
    message: str
    code: ProblemCode


class AnswersError(Exception):
    """Base of all errors of this package."""


class InvalidSubmission(AnswersError):
    """An invalid submission. ``problems`` contains one entry for each invalid field."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.path}: {problem.message}" for problem in self.problems))


def invalid(path: str, message: str, code: ProblemCode) -> InvalidSubmission:
    """Return the error of a submission with one problem."""
    return InvalidSubmission([Problem(path=path, message=message, code=code)])


class AnswersNotFound(AnswersError):
    """A folder contains no answers of the agent or task."""


class TooManyParts(AnswersError):
    """A report contains more citations, lines or sentences than can be bound."""

    def __init__(self, limit: int, parts: str) -> None:
        super().__init__(f"The report contains more than {limit:,} {parts}. Divide it into several files.")
