"""Retention on a real database with stored bodies in a folder."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from app.maintenance.retention import prune
from app.storage.captures import PostgresCaptureIndex
from app.storage.database import Database
from app.storage.page_changes import ChangeAction, PageChange, insert_change
from app.storage.records import JobStatus
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, PageKind
from cache.capture_index import FolderIndex, capture_to_bytes
from cache.errors import IndexFailed
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


async def test_prune_removes_old_jobs_with_unshared_data(shelf: RetentionStore):
    old, young = await shelf.judged("old", age=OLD), await shelf.judged("young")
    await shelf.page("https://example.org/old", age=OLD, shown_in=old)
    kept = await shelf.page("https://example.org/young", shown_in=young)
    done = await shelf.prune()
    assert (done.rows.jobs, done.rows.results, len(done.rows.captures), done.bodies) == (1, 1, 1, 1)
    assert await shelf.counts() == {
        "jobs": 1,
        "results": 1,
        "submissions": 1,
        "answers": 1,
        "captures": 1,
        "result_pages": 1,
        "bodies": 1,
    }
    assert await PostgresCaptureIndex(shelf.database).get(kept) is not None


async def test_prune_keeps_bodies_shared_with_kept_captures(shelf: RetentionStore):
    old = await shelf.judged("old", age=OLD)
    await shelf.page("https://example.org/same", age=OLD, shown_in=old)
    young = await shelf.judged("young")
    blob = await shelf.blobs.put(b"https://example.org/same", "text/plain")
    await shelf.page("https://example.org/other", shown_in=young)
    await shelf.run(
        "UPDATE captures SET record = replace(record, :there, :same) WHERE url LIKE '%other'",
        there=(await shelf.blobs.put(b"https://example.org/other", "text/plain")).sha256,
        same=blob.sha256,
    )
    await shelf.prune()
    assert await shelf.blobs.get(blob.sha256)


async def test_prune_keeps_old_unfinished_jobs(shelf: RetentionStore):
    [job_id] = await shelf.rig.submit("waiting")
    await shelf.run("UPDATE jobs SET created_at = created_at - :age", age=OLD)
    await shelf.run("UPDATE submissions SET created_at = created_at - :age", age=OLD)
    await shelf.prune()
    assert (await shelf.rig.job(job_id)).status is JobStatus.QUEUED


async def test_unreadable_record_aborts_prune_before_any_removal(shelf: RetentionStore):
    old = await shelf.judged("old", age=OLD)
    await shelf.page("https://example.org/old", age=OLD, shown_in=old)
    await shelf.blobs.put_record("page_of_tomorrow", b'{"record_version": 99}')
    before = await shelf.counts()
    with pytest.raises(IndexFailed, match="version 99"):
        await shelf.prune()
    assert await shelf.counts() == before


async def test_prune_keeps_pages_of_corrections_in_force(shelf: RetentionStore):
    in_force = await shelf.page("https://stands.example/", age=OLD)
    undone = await shelf.page("https://taken-back.example/", age=OLD)
    now = datetime.now(UTC)
    async with shelf.database.begin() as connection:
        for number, page in enumerate((in_force, undone)):
            edit = PageChange(
                id=f"chg_{number}", action=ChangeAction.EDIT, key_sha256="k", url="u", reason="", by="a", key_owner="a",
                for_owner=None, created_at=now,
            )  # fmt: skip
            await insert_change(connection, edit, shows=[page])
        undo = replace(edit, id="chg_undo", action=ChangeAction.UNDO, undoes=edit.id)
        assert await insert_change(connection, undo)
    gone = await shelf.prune()
    assert gone.rows.captures == (undone,)
