"""Results of ``assay evaluate``, which the service on the same data folder stores with their pages.

The command works without a database. It leaves a file for each result, and the service stores what it finds when it
starts and every few seconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog
from sqlalchemy import insert, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.access.keys import LOCAL_OWNER
from app.clock import IdGenerator
from app.engine.result_folder import EVALUATED
from app.jobs.execution import new_result
from app.storage import jobs as rows
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.records import JobStatus, NewResult
from app.storage.results import insert_result
from app.storage.tables import answers, jobs, results, submissions
from cache.capture_index import capture_from_bytes
from cache.errors import CacheError, IndexFailed

_INTERVAL_S: Final = 3.0
_REJECTED: Final = ".rejected"
_INVALID: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, SQLAlchemyError)
"""Errors of a file of another structure, or with values that the database cannot store."""
_log = structlog.get_logger(__name__)


class EvaluatedResults:
    """Stores the results that ``assay evaluate`` leaves in ``data_dir``, for the owner of this machine."""

    def __init__(self, database: Database, data_dir: Path, *, ids: IdGenerator) -> None:
        self._database = database
        self._index = PostgresCaptureIndex(database)
        self._folder = data_dir / EVALUATED
        self._captures = data_dir / "captures"
        self._ids = ids

    async def run(self) -> None:
        """Store new results until cancelled."""
        while True:
            try:
                await self.store_all()
            except (DatabaseUnavailable, OSError) as error:
                _log.warning("evaluated results not stored yet", detail=str(error))
            await asyncio.sleep(_INTERVAL_S)

    async def store_all(self) -> None:
        """Store the results of all files. A file without a valid result is renamed.

        Raises:
            DatabaseUnavailable: The database cannot be reached.
            OSError: A file cannot be removed or renamed.
        """
        for file in await asyncio.to_thread(lambda: sorted(self._folder.glob("*.json"))):
            try:
                kept = json.loads(await asyncio.to_thread(file.read_bytes))
                result = await new_result(str(kept["result"]["id"]), kept["result"])
                await self._store_pages(result.page_ids)
                await self._store(kept, result, at=datetime.fromtimestamp(file.stat().st_mtime, UTC))
            except (CacheError, OSError) as error:
                _log.warning("evaluated result not stored yet", file=file.name, detail=str(error))
            except _INVALID as error:
                _log.warning("evaluated result rejected", file=file.name, detail=f"{type(error).__name__}: {error}")
                with suppress(FileNotFoundError):  # another process of the service has renamed it
                    await asyncio.to_thread(file.rename, file.with_suffix(_REJECTED))
            else:
                await asyncio.to_thread(file.unlink, missing_ok=True)

    async def _store_pages(self, page_ids: tuple[str, ...]) -> None:
        """Add the captures to the index, except those whose record is lost. Their bodies are in the same store."""
        for page_id in page_ids:
            record = self._captures / f"{Path(page_id).name}.json"
            try:
                capture = capture_from_bytes(await asyncio.to_thread(record.read_bytes))
            except (FileNotFoundError, IndexFailed):
                continue
            await self._index.restore(capture)

    async def _store(self, kept: Mapping[str, Any], result: NewResult, *, at: datetime) -> None:
        async with self._database.begin() as connection:
            # Several processes of a service may find the same file.
            await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:id))"), {"id": result.id})
            known = await connection.execute(select(results.c.id).where(results.c.id == result.id))
            if known.first() is None:
                job_id = await self._insert_job(connection, kept, result, at=at)
                job = await rows.get_job(connection, job_id)
                assert job is not None  # noqa: S101 - inserted in this transaction
                await insert_result(connection, job, result, now=at)

    async def _insert_job(
        self, connection: AsyncConnection, kept: Mapping[str, Any], result: NewResult, *, at: datetime
    ) -> str:
        submission_id, job_id = self._ids.new("sub"), self._ids.new("job")
        said, sha256 = str(kept["text"]), str(kept["result"]["answer_sha256"])
        answer = {"sha256": sha256, "text": said, "words": len(said.split())}
        await connection.execute(postgresql.insert(answers).values(answer).on_conflict_do_nothing())
        shared = {
            "owner": LOCAL_OWNER,
            "agent": str(kept["agent"]),
            "task_id": str(kept["task_id"]),
            "model": str(kept["model"]),
            "created_at": at,
        }
        await connection.execute(insert(submissions).values(id=submission_id, metadata="{}", **shared))
        await connection.execute(
            insert(jobs).values(
                id=job_id,
                submission_id=submission_id,
                position=0,
                answer_name=str(kept["answer_name"]),
                answer_sha256=sha256,
                status=str(JobStatus.SUCCEEDED),
                attempts=1,
                attempts_allowed=1,
                result_id=result.id,
                started_at=at,
                finished_at=at,
                **shared,
            )
        )
        return job_id
