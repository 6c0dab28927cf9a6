"""Checkpoints and budget of one job attempt.

Replies that an earlier attempt paid for are reused. Each new request reserves budget first and settles its cost after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.budget_ledger import BudgetLedger
from app.jobs.errors import BudgetExhausted, JobBudgetExhausted
from app.storage.budgets import INSTALLATION_BUDGET, INSTALLATION_TOKEN_BUDGET, limits_of
from app.storage.checkpoints import Checkpoint, checkpoints_of
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.model_usage import UsageKey
from app.storage.records import Job
from app.storage.text_cleanup import storable_text
from judges.errors import LLMBudgetExceeded, LLMUnavailable, ShorterPage, UnusableKind, UnusableReply
from judges.llm.client import CheckpointedReply, LLMReply
from judges.llm.pricing import Estimate, unknown_price_message
from rubrics.verdict import Usage

_log = structlog.get_logger(__name__)


class RequestAccounting:
    """Budget of related model requests. Implements ``RequestBudget`` of ``judges.llm``."""

    def __init__(
        self,
        ledger: BudgetLedger,
        usage_fields: tuple[str, str, str],
        *,
        usd_budget_ids: Sequence[str] = (INSTALLATION_BUDGET,),
        limits_usd: Mapping[str, float],
    ) -> None:
        """``usage_fields``: owner, agent and task. ``limits_usd``: limits in USD of ``usd_budget_ids`` besides that of
        the installation."""
        self._ledger = ledger
        self._usage_fields = usage_fields
        self._usd_budget_ids = usd_budget_ids
        self._limits_usd = dict(limits_usd)
        if ledger.limit_usd is not None:
            self._limits_usd[INSTALLATION_BUDGET] = ledger.limit_usd
        self._limited = bool(self._limits_usd) or ledger.limit_tokens is not None
        self.exhausted: BudgetExhausted | None = None
        """Set when a request did not fit into a budget: the first such error."""

    async def reserve(self, estimate: Estimate) -> None:
        if not self._limited:
            return
        try:
            if estimate.usd is None and self._limits_usd and self._ledger.limit_tokens is None:
                budget_id, limit = next(iter(self._limits_usd.items()))
                raise BudgetExhausted(budget_id, limit, 0.0, problem=unknown_price_message(estimate.model))
            await self._ledger.reserve(self._amounts(estimate.usd, estimate.tokens))
        except BudgetExhausted as error:
            self.exhausted = self.exhausted or error
            raise LLMBudgetExceeded(str(error)) from error
        except DatabaseUnavailable as error:
            raise LLMUnavailable(f"Cannot check the budget: {error}") from error

    def settle(self, estimate: Estimate, usage: Usage | None, model: str, role: str) -> None:
        reserved = self._amounts(estimate.usd, estimate.tokens) if self._limited else {}
        self._ledger.settle(reserved, self._amounts(*estimate.charge(usage)))
        if usage is not None:
            self._ledger.record_usage(UsageKey(*self._usage_fields, model, role), usage)

    def _amounts(self, usd: float | None, tokens: int) -> dict[str, float]:
        """Return the amount for each budget. If ``usd`` is unknown, only the token budget is charged."""
        return {**dict.fromkeys(self._usd_budget_ids, usd or 0.0), INSTALLATION_TOKEN_BUDGET: float(tokens)}


class AttemptAccounting(RequestAccounting):
    """Checkpoints and budget of one job attempt. Also implements ``Checkpoints`` of ``judges.llm``."""

    def __init__(
        self, ledger: BudgetLedger, job: Job, known: Mapping[str, CheckpointedReply], *, limits_usd: Mapping[str, float]
    ) -> None:
        """``known``: stored replies by request key. ``limits_usd``: limit in USD of the submission, if any."""
        super().__init__(
            ledger,
            (job.owner, job.agent, job.task_id),
            usd_budget_ids=(INSTALLATION_BUDGET, job.submission_id),
            limits_usd=limits_usd,
        )
        self._job_id = job.id
        self._checkpoints = dict(known)

    @classmethod
    async def open(cls, database: Database, ledger: BudgetLedger, job: Job) -> AttemptAccounting:
        """Load the checkpoints and limits for a new attempt.

        Raises:
            JobBudgetExhausted: A budget is already spent, and the job has no checkpoints to continue from.
            DatabaseUnavailable: The database cannot be reached.
        """
        async with database.begin() as connection:
            stored = await checkpoints_of(connection, job.id)
            limits_usd = await limits_of(connection, [job.submission_id])
        account = cls(ledger, job, {one.key: _from_json(one) for one in stored}, limits_usd=limits_usd)
        if stored:
            _log.info("job continues from checkpoints", replies=len(stored))
        if account._limited and not stored:
            try:
                await ledger.check_not_exhausted([*account._usd_budget_ids, INSTALLATION_TOKEN_BUDGET])
            except BudgetExhausted as error:
                raise JobBudgetExhausted(error, None) from error
        return account

    def stored_reply(self, key: str) -> CheckpointedReply | None:
        """Return the stored reply for ``key``. Its cost is counted only the first time."""
        checkpoint = self._checkpoints.get(key)
        if checkpoint is not None and not checkpoint.counted:
            self._checkpoints[key] = replace(checkpoint, counted=True)
        return checkpoint

    async def store_reply(self, key: str, reply: LLMReply) -> None:
        checkpoint = CheckpointedReply(
            text=reply.text,
            model=reply.model,
            usage=reply.usage,
            cached=reply.cached,
            counted=True,
            unusable=reply.unusable,
            shorter_page=reply.shorter_page,
            retried=reply.retried,
            text_only=reply.text_only,
        )
        # Set before the write: an equal request that arrives during the write must not be sent again.
        self._checkpoints[key] = checkpoint
        await self._ledger.store_checkpoint(Checkpoint(job_id=self._job_id, key=key, reply=_to_json(checkpoint)))


async def checkpointed_replies(connection: AsyncConnection, job: Job) -> dict[str, CheckpointedReply]:
    """Return the checkpoints of a job, by request key. Call inside a transaction."""
    return {one.key: _from_json(one) for one in await checkpoints_of(connection, job.id)}


def _to_json(reply: CheckpointedReply) -> str:
    values = asdict(reply)
    del values["counted"]
    for rare in ("unusable", "shorter_page", "retried", "text_only"):
        if not values[rare]:
            del values[rare]
    return storable_text(json.dumps(values, ensure_ascii=False))


def _from_json(checkpoint: Checkpoint) -> CheckpointedReply:
    values = json.loads(checkpoint.reply)
    fields: dict[str, Any] = {"usage": Usage(**values["usage"]), "unusable": _all_unusable(values)}
    fields["retried"] = tuple(values.get("retried", ()))
    if "shorter_page" in values:
        shorter = values["shorter_page"]
        fields["shorter_page"] = ShorterPage(**shorter | {"unusable": _all_unusable(shorter)})
    return CheckpointedReply(**values | fields, counted=checkpoint.counted)


def _all_unusable(values: Mapping[str, Any]) -> tuple[UnusableReply, ...]:
    return tuple(map(_unusable, values.get("unusable", ())))


def _unusable(values: Mapping[str, Any]) -> UnusableReply:
    fields = {
        "kind": UnusableKind(values["kind"]),
        "usage": Usage(**values["usage"]),
        "then": tuple(values["then"]),
    }
    return UnusableReply(**{**values, **fields})
