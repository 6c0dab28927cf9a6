"""What can go wrong with jobs.

JobsError (app.errors.AppError)
├── JobNotFound          nobody knows this job
├── JobStateConflict     the job is not in a state that allows this
└── JobSuperseded        a worker lost its hold on the job: it was cancelled, or another attempt took over
"""

from __future__ import annotations

from app.errors import AppError


class JobsError(AppError):
    """Base of the errors about jobs."""


class JobNotFound(JobsError):
    """There is no such job."""


class JobStateConflict(JobsError):
    """The job's state does not allow what was asked."""


class JobSuperseded(JobsError):
    """The fence has fallen: whatever this attempt still writes must not count."""
