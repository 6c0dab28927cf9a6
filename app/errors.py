"""Base classes of the application's errors.

AppError
├── InvalidSettings
├── UnknownTask
├── InputRejected
├── StorageError             (app/storage/errors.py)
│   ├── DatabaseUnavailable
│   │   └── StorageFull
│   ├── DatabaseTooNew
│   ├── DataFolderRefused
│   └── IdempotencyConflict
└── JobsError                (app/jobs/errors.py)
"""

from __future__ import annotations

from judges.errors import ScriptStopped


class AppError(Exception):
    """Base class of the application's errors."""


class InvalidSettings(AppError):
    """Invalid setting, or invalid combination of settings. The message says how to fix it."""


class UnknownTask(AppError):
    """No judge file has this task ID, not even one that failed to load."""


class InputRejected(AppError):
    """The input of a job cannot be processed, and a retry would not help. ``code`` is the error code of the job."""

    code = "INPUT_REJECTED"


def script_error_code(stopped: ScriptStopped) -> str:
    """Return the public error code for a judge process that was stopped at a limit."""
    return "DEADLINE" if stopped.limit == "time" else "SCRIPT_LIMIT"
