"""Random kill test: workers are killed or stopped at random while they judge, and all results must be correct.

Only the checkpoints of a job remember replies. So every repeated call was in progress when its worker was hit: the
repeats of a job are limited by its lost attempts, and all repeats by the calls that workers have in progress.
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
from tests.faults.fork_server import WorkerForkServer, worker_url
from tests.standin.llm import StandInLLM
from tests.standin.rules import seeded_rule

TASK = "counts"
URL = "https://example.org/counting"
PAGE = (
    "Everybody here counts, and nobody has ever stopped to say how far. Some begin in the morning and go on until the "
    "lamps are lit; others count only what passes the window. There is a book in which it could be written down, and "
    "nobody has opened it yet."
)
"""Long enough that the page is not treated as a picture, whose transcription would take one more call."""
CLAIMS, VOTES = 5, 2
DELAY_S = 0.05
STALLED_S = 1.0
SWEEP_TIMEOUT_S = 120.0
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
class KillOutcome:
    """Outcome of a random kill test. The lists name violations."""

    kills: int
    pauses: int
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


class RandomKillTest:
    """One random kill test on one fresh database. ``folder`` is for task files, pages and logs."""

    def __init__(self, database: Database, folder: Path, *, seed: int, workers: int = 3) -> None:
        self._database = database
        self._folder = folder
        self._random = random.Random(seed)
        self._workers = workers
        self._model = StandInLLM(rule=RULE, delay_s=DELAY_S)

    async def run(self, *, kills: int, wave: int, within_s: float) -> KillOutcome:
        """Hit workers ``kills`` times, submitting jobs in groups of ``wave``; then let the remaining jobs finish."""
        (self._folder / "judges").mkdir(exist_ok=True)
        (self._folder / "judges" / "counts.py").write_text(JUDGE)
        began, pauses = time.monotonic(), 0
        job_ids: list[str] = []
        async with asyncio.timeout(within_s), self._model, Rig.opened(self._database, attempts=10_000) as rig:
            with WorkerForkServer(self._folder / "workers.log") as fork_server:
                pids = [await self._start_worker(fork_server) for _ in range(self._workers)]
                for nth in range(kills):
                    if nth % 10 == 0 and await self._unfinished() <= wave // 5:
                        job_ids += await self._submit(rig, wave, first=len(job_ids))
                    await self._wait_for_calls(self._random.randrange(20))
                    place = self._random.randrange(len(pids))
                    if self._random.random() < 0.1:
                        pauses += 1
                        await self._pause(pids[place])
                        continue
                    with suppress(ProcessLookupError):
                        os.kill(pids[place], signal.SIGKILL)
                    pids[place] = await self._start_worker(fork_server)
                while await self._unfinished():
                    assert any(psutil.pid_exists(pid) for pid in pids), "the workers ended by themselves"
                    await asyncio.sleep(0.2)
                await self._wait_for_sweep()
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
                while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110 - until none can write any more
                    await asyncio.sleep(0.05)
                return await self._outcome(job_ids, kills - pauses, pauses, time.monotonic() - began)

    async def _start_worker(self, fork_server: WorkerForkServer) -> int:
        settings = {
            "data_dir": str(self._folder),
            "database_url": worker_url(self._database),
            "model": "openai/gpt-6-luna",
            "openai_base_url": self._model.base_url,
            "reply_cache_bytes": 0,
            "max_llm": MAX_LLM,
            "stalled_s": STALLED_S,
        }
        return await asyncio.to_thread(
            fork_server.start,
            judges=str(self._folder / "judges"),
            settings=settings,
            pages={URL: PAGE},
            data_folder=str(self._folder / "data_folder"),
        )

    async def _pause(self, pid: int) -> None:
        """Stop a worker past its lease, so that others take its jobs, and then continue it."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            stopped_at = time.time()
            while await self._late_entries(stopped_at):  # noqa: ASYNC110 - the state is in the database
                await asyncio.sleep(0.05)
            os.kill(pid, signal.SIGCONT)

    async def _submit(self, rig: Rig, many: int, *, first: int) -> list[str]:
        names = [f"Runner {number}" for number in range(first, first + many)]
        return [job_id for name in names for job_id in await rig.submit(name, task_id=TASK)]

    async def _wait_for_calls(self, more: int) -> None:
        """Wait until the model has received ``more`` calls, at most half a second: workers may start or have no job."""
        wanted = len(self._model.calls) + more
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while len(self._model.calls) < wanted:  # noqa: ASYNC110 - a list has no event
                    await asyncio.sleep(0.01)

    async def _late_entries(self, since: float) -> int:
        """Return the number of entries of workers without a heartbeat since a time: those of a stalled one."""
        query = (
            "SELECT count(*) FROM procrastinate_jobs JOIN procrastinate_workers workers ON workers.id = worker_id"
            " WHERE last_heartbeat < to_timestamp(:since)"
        )
        async with self._database.begin() as connection:
            return int((await connection.execute(text(query), {"since": since})).scalar_one())

    async def _unfinished(self) -> int:
        query = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')"
        async with self._database.begin() as connection:
            return int((await connection.execute(text(query))).scalar_one())

    async def _wait_for_sweep(self) -> None:
        """Wait until the sweep has removed queue entries of workers that were killed between the end of a job and of
        its entry.

        On a slow machine this takes several rounds. The outcome reports entries that remain.
        """
        give_up_at = time.monotonic() + SWEEP_TIMEOUT_S
        while time.monotonic() < give_up_at and any((await self._count_left_over()).values()):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.2)

    async def _count_left_over(self) -> dict[str, int]:
        async with self._database.begin() as connection:
            return dict((await connection.execute(_LEFT_OVER)).mappings().one())

    async def _outcome(self, job_ids: Sequence[str], kills: int, pauses: int, seconds: float) -> KillOutcome:
        async with self._database.begin() as connection:
            rows = (await connection.execute(_OUTCOMES)).mappings().all()
        left = await self._count_left_over()
        known = {row["id"] for row in rows}
        return KillOutcome(
            kills=kills,
            pauses=pauses,
            jobs=len(job_ids),
            calls=len(self._model.calls),
            needed_calls=len(job_ids) * CLAIMS * VOTES,
            seconds=seconds,
            lost=[one for one in job_ids if one not in known]
            + [f"{row['id']} {row['status']} {row['error']}" for row in rows if row["status"] != "succeeded"],
            duplicate=[f"{row['id']} has {row['results']} results" for row in rows if row["results"] != 1],
            wrong=[f"{row['id']}: {why}" for row in rows if row["body"] and (why := _wrong(row["text"], row["body"]))],
            paid_twice=self._paid_twice({row["text"].strip(): row["attempts"] for row in rows}, kills + pauses),
            left_over=[f"{number} {what}" for what, number in left.items() if number],
        )

    def _paid_twice(self, attempts: Mapping[str, int], hits: int) -> list[str]:
        """Return claims that were requested more often than the hits explain."""
        calls = Counter(call.claim for call in self._model.calls)
        most = {claim: VOTES * attempts[claim.partition(" counts")[0]] for claim in calls}
        found = [f"{claim!r}: {many} calls" for claim, many in calls.items() if many > most[claim]]
        again = calls.total() - len(calls) * VOTES
        # Calls that a worker has in progress, and as many again that were answered but not yet stored.
        return found + ([f"{again} calls after {hits} hits"] if again > 2 * MAX_LLM * hits else [])


def _wrong(answer: str, body: str) -> str | None:
    """Return how a result differs from that of an undisturbed worker, if it does."""
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
