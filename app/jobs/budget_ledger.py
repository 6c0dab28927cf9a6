"""Budget reservations, costs and checkpoints of model requests, written in batches.

While one transaction runs, new entries are collected for the next one, so a model request costs the database little. A
reply and its cost are written in the same transaction. A request is sent only if its estimated cost fits into every
budget that applies, over all workers. Reservations of running requests expire if their worker is lost.

Replies that an earlier attempt paid for are reused. Each new request reserves budget first and settles its cost after.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.async_tools import cancellable_sleep
from app.jobs.errors import BudgetExhausted, JobBudgetExhausted
from app.storage import budgets as rows
from app.storage.budgets import (
    INSTALLATION_BUDGET,
    INSTALLATION_TOKEN_BUDGET,
    Checkpoint,
    UsageKey,
    UsageTotals,
    add_usage,
    checkpoints_of,
    insert_checkpoints,
    limits_of,
)
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.records import Job, storable_text
from judges.errors import LLMBudgetExceeded, LLMUnavailable, ShorterPage, UnusableKind, UnusableReply
from judges.llm.client import CheckpointedReply, LLMReply
from judges.llm.pricing import Estimate, unknown_price_message
from rubrics.verdict import Usage

_RETRY_INTERVAL_S = 0.5
_RESERVATION_TTL_S = 30.0
_MIN_AMOUNT = 1e-9
_MAX_DELAY_S = 0.2
"""Maximum delay of costs and usage that are written in the background."""
_WAITING_INTERVAL_S = 0.25
"""Interval at which waiting reservations are tried again."""
_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Reservation:
    amounts: Mapping[str, float]
    granted: asyncio.Future[None]


@dataclass(slots=True)
class _Batch:
    """Entries that one transaction writes."""

    checkpoints: list[tuple[Checkpoint, asyncio.Future[None]]] = field(default_factory=list)
    reservations: list[_Reservation] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    released: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    usage: dict[UsageKey, UsageTotals] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.checkpoints or self.reservations or self.spent or self.released or self.usage)


class BudgetLedger:
    """Writer of budgets and checkpoints. One per process; use it inside ``running``.

    ``limit_usd`` and ``limit_tokens`` are the limits of the installation (None: no limit). Amounts are in USD, except
    those of the token budget. A write is retried for ``retry_for_s`` seconds while the database is unavailable.
    """

    def __init__(
        self,
        database: Database,
        *,
        limit_usd: float | None,
        limit_tokens: int | None = None,
        retry_for_s: float = 60.0,
    ) -> None:
        self._database = database
        self.limit_usd = limit_usd
        self.limit_tokens = limit_tokens
        self._retry_for_s = retry_for_s
        self._holder = secrets.token_hex(8)
        self._next = _Batch()
        self._reserved: dict[str, float] = {}
        self._waiting: list[_Reservation] = []
        self._wake = asyncio.Event()
        self._delayed: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[BudgetLedger]:
        """Run the writer during the block. Write the remaining entries on exit."""
        writing = asyncio.create_task(self._run(), name="ledger")
        try:
            yield self
        finally:
            writing.cancel()
            await asyncio.wait({writing})
            with suppress(DatabaseUnavailable):
                await self._write(self._take_batch())

    async def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a reply. Return when it is committed, or when the database was unavailable for too long."""
        written = asyncio.get_running_loop().create_future()
        self._next.checkpoints.append((checkpoint, written))
        self._wake.set()
        await written

    async def reserve(self, amounts: Mapping[str, float]) -> None:
        """Reserve an amount in each budget. Wait if it could still fit after other reservations are settled.

        Raises:
            BudgetExhausted: The amount does not fit, even without the reservations of other requests.
            DatabaseUnavailable: The budgets cannot be checked.
        """
        granted = asyncio.get_running_loop().create_future()
        self._next.reservations.append(_Reservation(amounts, granted))
        self._wake.set()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.settle(amounts, {})  # granted at the moment of cancellation
            raise

    def settle(self, reserved: Mapping[str, float], spent: Mapping[str, float]) -> None:
        """Add the actual cost to each budget and release the reservation."""
        for budget_id, amount in reserved.items():
            self._next.released[budget_id] += amount
        for budget_id in {**reserved, **spent}:
            self._next.spent[budget_id] += spent.get(budget_id, 0.0)
        if reserved:  # another request may be waiting for it
            self._wake.set()
        else:
            self._wake_soon()

    def record_usage(self, account: UsageKey, usage: Usage) -> None:
        """Add a request to the usage statistics."""
        if usage.calls:
            self._next.usage[account] = self._next.usage.get(account, UsageTotals()) + UsageTotals.of(usage)
            self._wake_soon()

    async def check_not_exhausted(self, budget_ids: Sequence[str]) -> None:
        """Check that no budget is spent.

        Raises:
            BudgetExhausted: One of the budgets is spent.
        """
        async with self._database.begin() as connection:
            limits = await self._limits(connection, budget_ids)
            for budget_id, limit in limits.items():
                if (spent := await rows.get_spent(connection, budget_id)) >= limit:
                    raise BudgetExhausted(budget_id, limit, spent)

    def _wake_soon(self) -> None:
        """Write the background entries: together with the next other entries, or after ``_MAX_DELAY_S``."""
        if self._delayed is None:
            self._delayed = asyncio.get_running_loop().call_later(_MAX_DELAY_S, self._wake.set)

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAITING_INTERVAL_S if self._waiting else _RESERVATION_TTL_S / 3):
                    await self._wake.wait()
            self._wake.clear()
            batch = self._take_batch()
            if not batch.is_empty or self._reserved:
                await self._retry_write(batch)
            await cancellable_sleep(0.0)

    def _take_batch(self) -> _Batch:
        """Return the collected entries together with the waiting reservations, and start a new batch."""
        batch, self._next = self._next, _Batch()
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None
        batch.reservations = [one for one in (*self._waiting, *batch.reservations) if not one.granted.done()]
        self._waiting = []
        return batch

    async def _retry_write(self, batch: _Batch) -> None:
        deadline = time.monotonic() + self._retry_for_s
        while True:
            try:
                return await self._write(batch)
            except (DatabaseUnavailable, DBAPIError) as error:  # any error: all jobs of this process wait for this task
                _log.warning("budget writer waits for the database", replies=len(batch.checkpoints), detail=str(error))
                if time.monotonic() > deadline:
                    # Without the database these jobs cannot finish either. They will be run again.
                    for _, written in batch.checkpoints:
                        _resolve(written)
                    for reservation in batch.reservations:
                        _resolve(reservation.granted, DatabaseUnavailable("The budgets cannot be written"))
                    return
            except asyncio.CancelledError:
                self._restore(batch)
                raise
            await cancellable_sleep(_RETRY_INTERVAL_S)

    def _restore(self, batch: _Batch) -> None:
        """Return the entries of a failed batch, so the final write includes them."""
        self._next.checkpoints = batch.checkpoints + self._next.checkpoints
        for budget_id, amount in batch.spent.items():
            self._next.spent[budget_id] += amount
        for budget_id, amount in batch.released.items():
            self._next.released[budget_id] += amount
        for account, spent in batch.usage.items():
            self._next.usage[account] = self._next.usage.get(account, UsageTotals()) + spent

    async def _write(self, batch: _Batch) -> None:
        """Write a batch in one transaction. Notify the callers after the commit."""
        reserved_here = dict(self._reserved)
        for budget_id, amount in batch.released.items():
            reserved_here[budget_id] = max(0.0, reserved_here.get(budget_id, 0.0) - amount)
        decided: list[tuple[_Reservation, BudgetExhausted | None]] = []
        async with self._database.begin() as connection:
            changed = {
                *batch.spent,
                *(budget_id for reservation in batch.reservations for budget_id in reservation.amounts),
            }
            if changed:
                spent = await rows.add_spent(
                    connection, {budget_id: batch.spent.get(budget_id, 0.0) for budget_id in changed}
                )
                if batch.reservations:
                    decided = await self._decide(connection, batch.reservations, spent, reserved_here)
            if reserved_here:
                await rows.set_reservations(connection, reserved_here, holder=self._holder, ttl_s=_RESERVATION_TTL_S)
            await add_usage(connection, batch.usage, day=datetime.now(UTC).date())
            if batch.checkpoints:
                await insert_checkpoints(connection, [checkpoint for checkpoint, _ in batch.checkpoints])
        self._reserved = {budget_id: amount for budget_id, amount in reserved_here.items() if amount > _MIN_AMOUNT}
        answered = [one for one, _ in decided]
        self._waiting = [reservation for reservation in batch.reservations if reservation not in answered]
        for one, error in decided:
            self._notify(one, error)
        for _, written in batch.checkpoints:
            _resolve(written)

    async def _decide(
        self,
        connection: AsyncConnection,
        reservations: Sequence[_Reservation],
        spent: Mapping[str, float],
        reserved_here: dict[str, float],
    ) -> list[tuple[_Reservation, BudgetExhausted | None]]:
        """Return the reservations that fit (and add them to ``reserved_here``) and those that never will.

        Reservations that are not returned have to wait.
        """
        limits = await self._limits(connection, spent)
        reserved_elsewhere = await rows.reserved_by_others(connection, limits, holder=self._holder)
        decided: list[tuple[_Reservation, BudgetExhausted | None]] = []
        for reservation in reservations:
            limited = [budget_id for budget_id in reservation.amounts if budget_id in limits]
            exhausted = next(
                (
                    budget_id
                    for budget_id in limited
                    if not _fits(spent[budget_id], reservation.amounts[budget_id], limits[budget_id])
                ),
                None,
            )
            if exhausted is not None:
                decided.append((reservation, BudgetExhausted(exhausted, limits[exhausted], spent[exhausted])))
                continue
            reserved = {
                budget_id: spent[budget_id] + reserved_elsewhere.get(budget_id, 0.0) + reserved_here.get(budget_id, 0.0)
                for budget_id in limited
            }
            if all(
                _fits(reserved[budget_id], reservation.amounts[budget_id], limits[budget_id]) for budget_id in limited
            ):
                for budget_id, amount in reservation.amounts.items():
                    reserved_here[budget_id] = reserved_here.get(budget_id, 0.0) + amount
                decided.append((reservation, None))
        return decided

    async def _limits(self, connection: AsyncConnection, budget_ids: Iterable[str]) -> dict[str, float]:
        limits = await rows.limits_of(connection, budget_ids)
        if self.limit_usd is not None and rows.INSTALLATION_BUDGET in budget_ids:
            limits[rows.INSTALLATION_BUDGET] = self.limit_usd
        if self.limit_tokens is not None and rows.INSTALLATION_TOKEN_BUDGET in budget_ids:
            limits[rows.INSTALLATION_TOKEN_BUDGET] = self.limit_tokens
        return limits

    def _notify(self, one: _Reservation, error: BudgetExhausted | None) -> None:
        if one.granted.done():  # the caller was cancelled
            if error is None:
                self.settle(one.amounts, {})
        else:
            _resolve(one.granted, error)


def _fits(taken: float, amount: float, limit: float) -> bool:
    return taken < limit and taken + amount <= limit


def _resolve(waiting: asyncio.Future[None], error: Exception | None = None) -> None:
    if waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)


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
