"""What can go wrong with jobs.

JobsError (app.errors.AppError)
├── JobNotFound          nobody knows this job
├── JobStateConflict     the job is not in a state that allows this
├── QueueFull            as many jobs wait as may
├── PurseEmpty           a model call does not fit into what is left of a budget
├── BudgetReached        a job cannot be judged to its end before a budget is raised
└── JobSuperseded        a worker lost its hold on the job: it was cancelled, or another attempt took over
"""

from __future__ import annotations

from typing import Any

from app.errors import AppError
from app.storage.purses import INSTALLATION_TOKENS


class JobsError(AppError):
    """Base of the errors about jobs."""


class JobNotFound(JobsError):
    """There is no such job."""


class JobStateConflict(JobsError):
    """The job's state does not allow what was asked."""


class QueueFull(JobsError):
    """As many jobs are waiting as may; what comes now has to come again."""


class PurseEmpty(JobsError):
    """A model call does not fit into what ``purse`` has left of its ``limit_usd``."""

    def __init__(self, purse: str, limit_usd: float, spent_usd: float, *, problem: str | None = None) -> None:
        """``problem`` stands in for the usual text. The purse of tokens counts tokens in place of USD."""
        spent = f"{spent_usd:.4f} of {limit_usd:g} USD are spent, and the next call may cost more than is left"
        if purse == INSTALLATION_TOKENS:
            spent = f"{spent_usd:.0f} of {limit_usd:.0f} tokens are used, and the next call may need more than is left"
        super().__init__(problem or spent)
        self.purse = purse
        self.limit_usd = limit_usd


class BudgetReached(JobsError):
    """Some of a job's model calls were not made for want of money. ``result``: what could be judged all the same."""

    def __init__(self, empty: PurseEmpty, result: dict[str, Any] | None) -> None:
        super().__init__(str(empty))
        self.purse = empty.purse
        self.limit_usd = empty.limit_usd
        self.result = result


class JobSuperseded(JobsError):
    """The fence has fallen: whatever this attempt still writes must not count."""
