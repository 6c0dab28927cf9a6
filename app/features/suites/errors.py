"""What can go wrong around a suite's run.

AppError
├── RunMismatch       a folder holds the steps of a run under other conditions
├── RunUnwritable     a journal or report cannot be written
└── PathNotAllowed    a request names data outside the folders that the operator allowed
"""

from __future__ import annotations

from app.errors import AppError


class RunMismatch(AppError):
    """Steps of another run cannot complete this one. The message says what differs."""


class RunUnwritable(AppError):
    """The disk refuses. The message names the file."""


class PathNotAllowed(AppError):
    """Not to be told apart from a path that does not exist, save where an operator allowed its folder."""
