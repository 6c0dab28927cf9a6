"""Answers: what agents hand in, the rules it keeps, and the URLs it cites. Knows nothing of pages or judges.

The everyday names are here; ``citations``, ``bundle`` and ``archive`` are used by module.
"""

from __future__ import annotations

from answers.errors import AnswersError, AnswersNotFound, ArchiveRefused, InvalidSubmission, Problem, ProblemCode
from answers.submission import Answer, Submission, checked_submission

__all__ = [
    "Answer",
    "AnswersError",
    "AnswersNotFound",
    "ArchiveRefused",
    "InvalidSubmission",
    "Problem",
    "ProblemCode",
    "Submission",
    "checked_submission",
]
