"""Retention on a real database with stored bodies in a folder."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from app.maintenance.retention import prune
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, PageKind
from cache.capture_index import FolderIndex, capture_to_bytes
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres

OLD = timedelta(days=100)
TABLES = ("jobs", "results", "submissions", "answers", "captures", "result_pages")


class RetentionStore:
    """Store of judged answers and captures of any age."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig = rig
        self.database: Database = rig.database
        self.blobs = BlobStore.open((folder / "blobs").as_uri())
        self.folder = folder / "blobs"

    async def judged(self, answer: str, *, age: timedelta = timedelta(0)) -> str:
        """Judge an answer, date it back by ``age``, and return its job."""
        async with self.rig.running_worker(ScriptedEvaluation()):
            [job_id] = await self.rig.submit(answer)
            await self.rig.wait_for_job(job_id)
        for table, column in (("jobs", "finished_at"), ("jobs", "created_at")):
            await self.run(f"UPDATE {table} SET {column} = {column} - :age WHERE id = :id", age=age, id=job_id)
        await self.run(
            "UPDATE submissions SET created_at = (SELECT created_at FROM jobs WHERE submission_id = s.id)"
            " FROM submissions s WHERE s.id = submissions.id"
        )
        return job_id

    async def page(self, url: str, *, age: timedelta = timedelta(0), shown_in: str | None = None) -> str:
        """Store a capture dated back by ``age``, optionally used by the result of a job, and return its id."""
        blob = await self.blobs.put(url.encode(), "text/plain")
        [stored] = self.folder.glob(f"sha256/*/{blob.sha256}")
        then = datetime.now(UTC) - age
        await asyncio.to_thread(os.utime, stored, (then.timestamp(), then.timestamp()))
        capture = Capture(
            id=f"page_{len(url)}_{abs(hash(url))}",
            key=url,
            url=url,
            final_url=url,
            outcome=CaptureOutcome.OK,
            captured_at=then,
            duration_s=0.1,
            backend="by hand",
            http_status=200,
            kind=PageKind.WEB,
            title="",
            blobs={"text": blob},
        )
        await PostgresCaptureIndex(self.database).record(capture)
        if shown_in is not None:
            await self.run(
                "INSERT INTO result_pages SELECT id, :page FROM results WHERE job_id = :job",
                page=capture.id,
                job=shown_in,
            )
        return capture.id

    async def run(self, statement: str, **values: object) -> None:
        async with self.database.begin() as connection:
            await connection.execute(text(statement), values)

    async def counts(self) -> dict[str, int]:
        async with self.database.begin() as connection:
            return {
                table: (await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one()
                for table in TABLES
            } | {"bodies": len(await self.blobs.hashes())}

    async def prune(self, *, days: int = 90, dry_run: bool = False):
        now = datetime.now(UTC)
        return await prune(
            self.database,
            self.blobs,
            before=now - timedelta(days=days),
            now=now,
            dry_run=dry_run,
            folder=self.folder.parent / "captures",
        )


@pytest.fixture
def shelf(rig: Rig, tmp_path: Path) -> RetentionStore:
    return RetentionStore(rig, tmp_path)


async def test_prune_keeps_old_evidence_of_recent_results(shelf: RetentionStore):
    young = await shelf.judged("young")
    page = await shelf.page("https://example.org/old", age=OLD, shown_in=young)
    done = await shelf.prune()
    assert (done.rows.captures, done.bodies) == ((), 0)
    found = await PostgresCaptureIndex(shelf.database).get(page)
    assert found is not None
    assert await shelf.blobs.get(found.blobs["text"].sha256) == b"https://example.org/old"


async def test_rehearsal_reports_same_counts_and_changes_nothing(shelf: RetentionStore):
    old = await shelf.judged("old", age=OLD)
    await shelf.page("https://example.org/old", age=OLD, shown_in=old)
    before = await shelf.counts()
    counted = await shelf.prune(dry_run=True)
    assert await shelf.counts() == before
    assert await shelf.prune() == counted
    assert sum((await shelf.counts()).values()) == 0


async def test_prune_keeps_captures_of_commands_without_database(shelf: RetentionStore):
    """The record is next to the bodies, in the data folder, or in both. It has no database row."""
    old = await shelf.judged("old", age=OLD)
    forgotten = await shelf.page("https://example.org/forgotten", age=OLD, shown_in=old)
    in_both = await shelf.page("https://example.org/in-both", age=OLD, shown_in=old)
    records = await FolderIndex.open(shelf.folder.parent / "captures")
    index = PostgresCaptureIndex(shelf.database)
    kept: list[Capture] = []
    for capture_id in (forgotten, in_both):
        capture = await index.get(capture_id)
        assert capture is not None
        await shelf.blobs.put_record(capture.id, capture_to_bytes(capture))
        if capture_id == in_both:
            await records.record(capture)
            kept.append(capture)
    for url, in_folder in (("https://example.org/evaluated", True), ("https://example.org/beside-bodies", False)):
        page = await shelf.page(url, age=OLD)
        capture = await index.get(page)
        assert capture is not None
        await shelf.run("DELETE FROM captures WHERE id = :id", id=page)
        await (records.record(capture) if in_folder else shelf.blobs.put_record(page, capture_to_bytes(capture)))
        kept.append(capture)
    counted = await shelf.prune(dry_run=True)
    done = await shelf.prune()
    assert (len(done.rows.captures), done.bodies) == (2, 1)
    assert counted == done
    for capture in kept:
        assert await shelf.blobs.get(capture.blobs["text"].sha256) == capture.url.encode()
    left = {name async for name, _ in shelf.blobs.records()}
    assert left == {in_both, kept[-1].id}
    assert (await shelf.prune()).bodies == 0
