"""What can go wrong in the application itself.

AppError
├── WrongSettings            the environment or .env asks for something impossible
├── UnknownTask              no judge for this task
└── StorageError             (app/storage/errors.py)
    ├── DatabaseUnavailable
    │   └── StorageFull
    ├── DatabaseTooNew
    └── DataFolderRefused

``JobError`` and its kin live in app/jobs/errors.py.
"""

from __future__ import annotations

from judges.errors import ScriptStopped


class AppError(Exception):
    """Base of every error the application raises on purpose."""


class WrongSettings(AppError):
    """A setting, or a pair of settings, that cannot be obeyed. The message names the remedy."""


class UnknownTask(AppError):
    """No judge file, sound or broken, has this task id."""


def code_of(stopped: ScriptStopped) -> str:
    """What users are told a judge file's process was ended for, as one word."""
    return "DEADLINE" if stopped.limit == "time" else "SCRIPT_LIMIT"
