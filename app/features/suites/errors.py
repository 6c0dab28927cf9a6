"""Errors of suite runs.

AppError
├── RunMismatch       the folder contains steps of a run with other options or data
├── RunUnwritable     a journal or report cannot be written
└── PathNotAllowed    a request names data outside the allowed folders
"""

from __future__ import annotations

from app.errors import AppError


class RunMismatch(AppError):
    """The stored steps belong to a run with other options or data. The message lists the differences."""


class RunUnwritable(AppError):
    """A file cannot be written. The message names the file."""


class PathNotAllowed(AppError):
    """A path is outside the allowed folders or does not exist. Callers cannot distinguish the two cases."""
