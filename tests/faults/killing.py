"""The hunt: workers are killed and put to sleep at random while they judge, and everything must come out right.

Nothing but a job's own checkpoints remembers replies, so each call that is made once more was under way when its worker
was hit: no more than its job had lost attempts, and no more in all than workers have calls under way.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text

from app.storage.database import Database
from tests.fakes.services import Rig
from tests.faults.nursery import Nursery
from tests.standin.llm import StandInLLM
from tests.standin.rules import seeded_rule

TASK = "counts"
URL = "https://example.org/counting"
PAGE = (
    "Everybody here counts, and nobody has ever stopped to say how far. Some begin in the morning and go on until the "
    "lamps are lit; others count only what passes the window. There is a book in which it could be written down, and "
    "nobody has opened it yet."
)
"""Long enough not to be taken for a page that is all picture, whose words would be asked for by one call more."""
CLAIMS, VOTES = 5, 2
DELAY_S = 0.05
STALLED_S = 1.0
SWEPT_S = 120.0
MAX_LLM = 4
JUDGE = f"""
from judges.registry import judge

@judge(task={TASK!r}, description="Count.")
async def counts(ctx):
    who = ctx.answer.text.strip()
    for number in range({CLAIMS}):
        ctx.verify(f"claim_{{number}}", f"{{who}} counts to {{number}}", sources=[{URL!r}] if number == 0 else None)
"""
RULE = seeded_rule(7, pass_rate=0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bag:
    """What a hunt came to. The lists name what should not be."""

    kills: int
    sleeps: int
    jobs: int
    calls: int
    needed_calls: int
    seconds: float
    lost: Sequence[str] = field(default_factory=list)
    duplicate: Sequence[str] = field(default_factory=list)
    wrong: Sequence[str] = field(default_factory=list)
    paid_twice: Sequence[str] = field(default_factory=list)
    left_over: Sequence[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [*self.lost, *self.duplicate, *self.wrong, *self.paid_twice, *self.left_over]


class Hunt:
    """One hunt over one fresh database. ``folder`` is for judge files, pages and logs."""

    def __init__(self, database: Database, folder: Path, *, seed: int, workers: int = 3) -> None:
        self._database = database
        self._folder = folder
        self._random = random.Random(seed)
        self._workers = workers
        self._model = StandInLLM(rule=RULE, delay_s=DELAY_S)

    async def run(self, *, kills: int, wave: int, within_s: float) -> Bag:
        """Hit workers ``kills`` times, with jobs handed in ``wave`` by ``wave``; then let the rest be done."""
        (self._folder / "judges").mkdir(exist_ok=True)
        (self._folder / "judges" / "counts.py").write_text(JUDGE)
        began, sleeps = time.monotonic(), 0
        job_ids: list[str] = []
        async with asyncio.timeout(within_s), self._model, Rig.opened(self._database, attempts=10_000) as rig:
            with Nursery(self._folder / "workers.log") as nursery:
                living = [await self._born(nursery) for _ in range(self._workers)]
                for nth in range(kills):
                    if nth % 10 == 0 and await self._unfinished() <= wave // 5:
                        job_ids += await self._hand_in(rig, wave, first=len(job_ids))
                    await asyncio.sleep(self._random.uniform(0.05, 0.45))
                    place = self._random.randrange(len(living))
                    if self._random.random() < 0.1:
                        sleeps += 1
                        await self._put_to_sleep(living[place])
                        continue
                    with suppress(ProcessLookupError):
                        os.kill(living[place], signal.SIGKILL)
                    living[place] = await self._born(nursery)
                while await self._unfinished():
                    assert any(psutil.pid_exists(pid) for pid in living), "the workers die by themselves"
                    await asyncio.sleep(0.2)
                await asyncio.sleep(2 * STALLED_S)  # whatever a late one still wanted to write
                await self._swept()
                return await self._bag(job_ids, kills - sleeps, sleeps, time.monotonic() - began)

    async def _born(self, nursery: Nursery) -> int:
        settings = {
            "data_dir": str(self._folder),
            "database_url": self._database.url,
            "model": "openai/gpt-6-luna",
            "openai_base_url": self._model.base_url,
            "reply_cache_bytes": 0,
            "max_llm": MAX_LLM,
            "heartbeat_s": 0.2,
            "stalled_s": STALLED_S,
        }
        return await asyncio.to_thread(
            nursery.start,
            judges=str(self._folder / "judges"),
            settings=settings,
            pages={URL: PAGE},
            kept=str(self._folder / "kept"),
        )

    async def _put_to_sleep(self, pid: int) -> None:
        """Past its lease, so that others take its jobs; then it wakes up and knows nothing of it."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(1.5 * STALLED_S)
            os.kill(pid, signal.SIGCONT)

    async def _hand_in(self, rig: Rig, many: int, *, first: int) -> list[str]:
        names = [f"Runner {number}" for number in range(first, first + many)]
        return [job_id for name in names for job_id in await rig.submit(name, task_id=TASK)]

    async def _unfinished(self) -> int:
        query = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')"
        async with self._database.begin() as connection:
            return int((await connection.execute(text(query))).scalar_one())

    async def _swept(self) -> None:
        """Whoever was killed between a job's end and its entry's leaves that to the sweep, which may be some rounds
        away where everything is slow. What is never swept is in the bag.
        """
        give_up_at = time.monotonic() + SWEPT_S
        while time.monotonic() < give_up_at and any((await self._left()).values()):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.2)

    async def _left(self) -> dict[str, int]:
        async with self._database.begin() as connection:
            return dict((await connection.execute(_LEFT_OVER)).mappings().one())

    async def _bag(self, job_ids: Sequence[str], kills: int, sleeps: int, seconds: float) -> Bag:
        async with self._database.begin() as connection:
            rows = (await connection.execute(_OUTCOMES)).mappings().all()
        left = await self._left()
        known = {row["id"] for row in rows}
        return Bag(
            kills=kills,
            sleeps=sleeps,
            jobs=len(job_ids),
            calls=len(self._model.calls),
            needed_calls=len(job_ids) * CLAIMS * VOTES,
            seconds=seconds,
            lost=[one for one in job_ids if one not in known]
            + [f"{row['id']} {row['status']} {row['error']}" for row in rows if row["status"] != "succeeded"],
            duplicate=[f"{row['id']} has {row['results']} results" for row in rows if row["results"] != 1],
            wrong=[f"{row['id']}: {why}" for row in rows if row["body"] and (why := _wrong(row["text"], row["body"]))],
            paid_twice=self._paid_twice({row["text"].strip(): row["attempts"] for row in rows}, kills + sleeps),
            left_over=[f"{number} {what}" for what, number in left.items() if number],
        )

    def _paid_twice(self, attempts: Mapping[str, int], hits: int) -> list[str]:
        """What was asked more often than hits explain."""
        calls = Counter(call.claim for call in self._model.calls)
        most = {claim: VOTES * attempts[claim.partition(" counts")[0]] for claim in calls}
        found = [f"{claim!r}: {many} calls" for claim, many in calls.items() if many > most[claim]]
        again = calls.total() - len(calls) * VOTES
        # Whatever a worker has under way, and as much again that was answered and is about to be written down.
        return found + ([f"{again} calls after {hits} hits"] if again > 2 * MAX_LLM * hits else [])


def _wrong(answer: str, body: str) -> str | None:
    """In what a result differs from what an undisturbed worker would have stored."""
    result: dict[str, Any] = json.loads(body)
    leaves = result["eval_breakdown"][0]["verification_tree"]["children"]
    for leaf in leaves:
        call: Any = _Claim(f"{answer.strip()} counts to {leaf['id'].removeprefix('claim_')}")
        expected = "passed" if RULE(call) else "failed"
        if leaf["outcome"] != expected:
            return f"{leaf['id']} is {leaf['outcome']}, not {expected}"
        if (leaf["usage"]["calls"], leaf["usage"]["cached_calls"]) != (VOTES, 0):
            return f"{leaf['id']} has the usage {leaf['usage']}"
    usage = result["usage"]
    if (len(leaves), usage["calls"], usage["cached_calls"]) != (CLAIMS, CLAIMS * VOTES, 0):
        return f"{len(leaves)} leaves, {usage}"
    return None


@dataclass(frozen=True)
class _Claim:
    claim: str


_OUTCOMES = text(
    "SELECT jobs.id, jobs.status, jobs.error, jobs.attempts, answers.text, results.body,"
    " (SELECT count(*) FROM results every WHERE every.job_id = jobs.id) AS results"
    " FROM jobs JOIN answers ON answers.sha256 = jobs.answer_sha256"
    " LEFT JOIN results ON results.id = jobs.result_id"
)
_LEFT_OVER = text(
    "SELECT (SELECT count(*) FROM procrastinate_jobs) AS entries, (SELECT count(*) FROM checkpoints) AS checkpoints,"
    " (SELECT count(*) FROM results WHERE id NOT IN (SELECT result_id FROM jobs WHERE result_id IS NOT NULL))"
    " AS results"
)
