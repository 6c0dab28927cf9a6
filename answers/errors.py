"""What can be wrong with answers that are handed in. The hierarchy:

AnswersError
|- InvalidSubmission    names, texts or metadata that are refused, all of them listed
|  `- ArchiveRefused    an archive that is refused as a whole
`- AnswersNotFound      a folder that holds no answers of that agent or task
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ProblemCode(StrEnum):
    """What kind of problem; ``too_large`` and ``too_many`` are about limits, the rest about content."""

    BAD_NAME = "bad_name"
    DUPLICATE = "duplicate"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    NOT_TEXT = "not_text"
    """Not UTF-8, or with a character that cannot be stored: NUL or half a surrogate pair."""
    NOT_JSON = "not_json"
    BAD_ARCHIVE = "bad_archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. ``path`` is a field, as ``answers.0.text``, or a file of a bundle."""

    path: str
    message: str
    code: ProblemCode


class AnswersError(Exception):
    """Base of everything this package raises."""


class InvalidSubmission(AnswersError):
    """Something that is handed in breaks a rule; ``problems`` names every field that does."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.path}: {problem.message}" for problem in self.problems))


class ArchiveRefused(InvalidSubmission):
    """An archive that is damaged, hostile, or not of the public layout; nothing of it is used."""


class AnswersNotFound(AnswersError):
    """A folder that holds no answers of that agent or task."""
