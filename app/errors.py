"""Base classes of the application's errors.

AppError
├── InvalidSettings
├── UnknownTask
├── InputRejected
├── StorageError             (app/storage/errors.py)
│   ├── DatabaseUnavailable
│   │   └── StorageFull
│   ├── OtherSchema
│   ├── DataFolderRefused
│   └── KeyReused, KeyInProgress
└── JobsError                (app/jobs/errors.py)
"""

from __future__ import annotations

from judges.errors import ScriptStopped


class AppError(Exception):
    """Base class of the application's errors."""


class InvalidSettings(AppError):
    """Invalid setting, or invalid combination of settings. The message says how to fix it."""


class UnknownTask(AppError):
    """No task file has this ID, not even one that failed to load."""


class InputRejected(AppError):
    """The input of a job cannot be processed, and a retry would not help. ``code`` is the error code of the job."""

    code = "INPUT_REJECTED"


_LIMIT_SETTINGS = {
    "time": "JOB_DEADLINE_S",
    "memory": "SCRIPT_MEMORY_BYTES",
}
"""Settings that set the limits of judge processes, by the limit of ``ScriptStopped``. Other limits are fixed."""


def script_error(stopped: ScriptStopped) -> tuple[str, str]:
    """Return the public error code and the message for a judge process that was stopped at a limit."""
    setting = _LIMIT_SETTINGS.get(stopped.limit)
    remedy = "" if setting is None else f". Fix the task file, or raise ASSAY_{setting}"
    return "DEADLINE" if stopped.limit == "time" else "SCRIPT_LIMIT", f"{stopped}{remedy}"
