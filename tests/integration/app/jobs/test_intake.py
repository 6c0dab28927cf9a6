from __future__ import annotations

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection
from sqlalchemy import text

from answers.submission import Answer, Submission
from app.storage.database import Database
from app.storage.errors import KeyInProgress, KeyReused
from app.storage.idempotency import IdempotencyKey
from app.storage.jobs import answer_text, jobs_of_submissions
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres

KEY = IdempotencyKey(owner="local", key="k1", fingerprint="f1")


def submission(*texts: str, task_id: str = "task", **fields: Any) -> Submission:
    answers = tuple(Answer(name=f"answer_{nth}.md", text=text) for nth, text in enumerate(texts, start=1))
    return Submission(agent="demo", task_id=task_id, answers=answers, **fields)


async def accept(rig: Rig, *submissions: Submission, key: IdempotencyKey | None = None) -> dict[str, Any]:
    return await rig.intake.accept(
        submissions,
        owner="local",
        respond=lambda receipts: {"all": [receipt.as_json() for receipt in receipts]},
        key=key,
    )


async def count(database: Database, table: str) -> int:
    async with database.begin() as connection:
        return int((await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one())


async def counts(rig: Rig) -> tuple[int, ...]:
    return tuple([await count(rig.database, table) for table in ("submissions", "jobs", "procrastinate_jobs")])


async def test_equal_answers_are_stored_once(rig: Rig):
    await accept(rig, submission("same", "same"), submission("same", task_id="other"))
    assert await count(rig.database, "answers") == 1
    assert await counts(rig) == (2, 3, 3)


async def test_long_answers_are_sent_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    sent, execute = list[int](), AsyncConnection.execute

    async def recorded(self: AsyncConnection[Any], query: Any, values: Any = None) -> Any:
        if "texts" in (values or ()):
            sent.append(len(values["texts"]))
        return await execute(self, query, values)

    monkeypatch.setattr(AsyncConnection, "execute", recorded)
    texts = [letter * 400_000 for letter in "abcde"]
    [accepted] = (await accept(rig, submission(*texts)))["all"]
    async with rig.database.begin() as connection:
        jobs = await jobs_of_submissions(connection, accepted["id"])
        stored = [await answer_text(connection, job.answer_sha256) for job in jobs]
    assert stored == texts
    assert [round(chars / 400_000) for chars in sent] == [2, 2, 1]


async def test_failed_request_stores_nothing(rig: Rig):
    def refuse(receipts: object) -> dict[str, Any]:
        raise RuntimeError("too late")

    with pytest.raises(RuntimeError):
        await rig.intake.accept([submission("one")], owner="local", respond=refuse)
    assert await counts(rig) == (0, 0, 0)
    assert await count(rig.database, "answers") == 0


async def test_repeated_key_returns_first_response_and_rejects_other_requests(rig: Rig):
    first = await accept(rig, submission("one"), key=KEY)
    assert await accept(rig, submission("one"), key=KEY) == first
    with pytest.raises(KeyReused):
        await accept(rig, submission("two"), key=IdempotencyKey(owner="local", key="k1", fingerprint="f2"))
    assert await counts(rig) == (1, 1, 1)
    await accept(rig, submission("two"), key=IdempotencyKey(owner="somebody", key="k1", fingerprint="f2"))
    assert await counts(rig) == (2, 2, 2)


async def test_concurrent_equal_requests_create_one_submission(rig: Rig):
    async def one() -> dict[str, Any] | None:
        try:
            return await accept(rig, submission("one"), key=KEY)
        except KeyInProgress:
            return None

    answers = [answer for answer in await asyncio.gather(*(one() for _ in range(20))) if answer is not None]
    assert answers
    assert all(answer == answers[0] for answer in answers)
    assert await counts(rig) == (1, 1, 1)
