"""Answers of agents: validation, import formats and citations. Independent of pages and judges.

Import the common names from here. Import ``citations``, ``bundle`` and ``archive`` as modules.
"""

from __future__ import annotations

from answers.errors import AnswersError, AnswersNotFound, InvalidArchive, InvalidSubmission, Problem, ProblemCode
from answers.submission import Answer, Submission, checked_submission

__all__ = [
    "Answer",
    "AnswersError",
    "AnswersNotFound",
    "InvalidArchive",
    "InvalidSubmission",
    "Problem",
    "ProblemCode",
    "Submission",
    "checked_submission",
]
