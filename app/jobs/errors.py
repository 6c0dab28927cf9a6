"""Errors of the job queue and of job execution.

JobsError (app.errors.AppError)
├── JobNotFound          no such job
├── JobStateConflict     the operation is not allowed in the job's state
├── QueueFull            the maximum number of queued jobs is reached
├── BudgetExhausted      a model request does not fit into the remaining budget
├── JobBudgetExhausted   a job cannot be finished until a budget is raised
└── JobSuperseded        the job was cancelled or taken over by another attempt
"""

from __future__ import annotations

from typing import Any

from app.errors import AppError
from app.storage.budgets import INSTALLATION_TOKEN_BUDGET


class JobsError(AppError):
    """Base class of the job errors."""


class JobNotFound(JobsError):
    """No such job."""


class JobStateConflict(JobsError):
    """Operation that the job's state does not allow."""


class QueueFull(JobsError):
    """The maximum number of queued jobs is reached. The client has to retry later."""


class BudgetExhausted(JobsError):
    """A model request does not fit into the rest of a budget."""

    def __init__(self, budget_id: str, limit_usd: float, spent_usd: float, *, problem: str | None = None) -> None:
        """``problem`` replaces the default message. For the token budget the amounts are tokens instead of USD."""
        spent = f"{spent_usd:.4f} of {limit_usd:g} USD are spent, and the next call may cost more than is left"
        if budget_id == INSTALLATION_TOKEN_BUDGET:
            spent = f"{spent_usd:.0f} of {limit_usd:.0f} tokens are used, and the next call may need more than is left"
        super().__init__(problem or spent)
        self.budget_id = budget_id
        self.limit_usd = limit_usd


class JobBudgetExhausted(JobsError):
    """A job skipped model requests because a budget is exhausted. ``result`` is the incomplete result, if any."""

    def __init__(self, exhausted: BudgetExhausted, result: dict[str, Any] | None) -> None:
        super().__init__(str(exhausted))
        self.budget_id = exhausted.budget_id
        self.limit_usd = exhausted.limit_usd
        self.result = result


class JobSuperseded(JobsError):
    """The attempt's fencing token is no longer valid. Its writes are rejected."""
