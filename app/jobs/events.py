"""Job event streams: one PostgreSQL listener per process that notifies all followers.

Each batch of changes costs one query, regardless of the number of open streams. A slow follower may miss intermediate
states, but never the last one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import structlog

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.jobs import CHANNEL, get_jobs
from app.storage.records import Job

_RECONNECT_S = 1.0
_RECHECK_S = 5.0
_log = structlog.get_logger(__name__)


class Follower:
    """Subscription of one reader to one job."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._latest: Job | None = None
        self._has_new = asyncio.Event()
        self.is_gone = False
        """Whether the job was deleted."""

    async def next(self, *, timeout_s: float) -> Job | None:
        """Wait for a state that was not returned yet and return the newest one; None after ``timeout_s``.

        If the job is deleted, return immediately.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_new.wait()
        except TimeoutError:
            return None
        self._has_new.clear()
        return self._latest

    def notify(self, job: Job) -> None:
        """Publish a state. Ignore it if its revision is not newer than the last one."""
        if self._latest is None or job.revision > self._latest.revision:
            self._latest = job
            self._has_new.set()

    def end(self) -> None:
        """Report that the job was deleted."""
        self.is_gone = True
        self._has_new.set()


class OwnerFollower:
    """Subscription of one reader to all jobs of ``owner`` (None: of all owners)."""

    def __init__(self, owner: str | None) -> None:
        self._owner = owner
        self._changed: dict[str, Job] = {}
        self._has_new = asyncio.Event()
        self.is_interrupted = False
        """Whether changes may have been missed."""

    async def next(self, *, timeout_s: float) -> list[Job]:
        """Wait for changes and return the newest state of each changed job; empty after ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._has_new.wait()
        except TimeoutError:
            return []
        self._has_new.clear()
        changed, self._changed = self._changed, {}
        return list(changed.values())

    def notify(self, job: Job) -> None:
        """Publish a state if the job belongs to the owner."""
        if self._owner is None or job.owner == self._owner:
            self._changed[job.id] = job
            self._has_new.set()

    def interrupt(self) -> None:
        """Report that changes may have been missed."""
        self.is_interrupted = True
        self._has_new.set()


class JobEvents:
    """Registry of followers. Requires ``run`` as a background task."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: dict[str, set[Follower]] = defaultdict(set)
        self._owner_followers: set[OwnerFollower] = set()
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    @property
    def followers(self) -> int:
        """Number of open followers."""
        return sum(map(len, self._followers.values())) + len(self._owner_followers)

    @contextmanager
    def follow(self, job_id: str) -> Iterator[Follower]:
        """Follow a job during the block. The follower receives the current state first."""
        follower = Follower(job_id)
        self._followers[job_id].add(follower)
        self._mark_changed(job_id)
        try:
            yield follower
        finally:
            self._followers[job_id].discard(follower)
            if not self._followers[job_id]:
                del self._followers[job_id]

    @contextmanager
    def follow_owner(self, owner: str | None) -> Iterator[OwnerFollower]:
        """Follow the changes of all jobs of an owner (None: of all owners) during the block."""
        follower = OwnerFollower(owner)
        self._owner_followers.add(follower)
        try:
            yield follower
        finally:
            self._owner_followers.discard(follower)

    async def run(self) -> None:
        """Listen for changes and notify followers until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="job events: listen")
            group.create_task(self._notify(), name="job events: notify")

    def _mark_changed(self, job_id: str) -> None:
        if self._owner_followers or job_id in self._followers:
            self._changed.add(job_id)
            self._wake.set()

    async def _listen(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._database.url, autocommit=True, connect_timeout=5
                ) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    # Changes before LISTEN are not announced again, so read every followed job once.
                    for job_id in list(self._followers):
                        self._mark_changed(job_id)
                    for follower in self._owner_followers:
                        follower.interrupt()
                    while True:
                        async for notification in connection.notifies(timeout=_RECHECK_S):
                            self._mark_changed(notification.payload)
                        await cancellable_sleep(0.0)
            except psycopg.OperationalError as error:
                _log.warning("job events interrupted", detail=str(error))
            await cancellable_sleep(_RECONNECT_S)

    async def _notify(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_RECHECK_S):
                    await self._wake.wait()
            except TimeoutError:
                self._changed.update(self._followers)
            self._wake.clear()
            changed, self._changed = self._changed, set()
            if changed:
                await self._publish(changed)
            await cancellable_sleep(0.0)

    async def _publish(self, job_ids: set[str]) -> None:
        try:
            async with self._database.begin() as connection:
                jobs = await get_jobs(connection, job_ids)
        except DatabaseUnavailable as error:
            _log.warning("job states not read", detail=str(error))
            return
        for job in jobs:
            for follower in (*self._followers.get(job.id, ()), *self._owner_followers):
                follower.notify(job)
        for job_id in job_ids.difference(job.id for job in jobs):
            for follower in self._followers.get(job_id, ()):
                follower.end()
