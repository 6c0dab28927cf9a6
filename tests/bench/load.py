"""Load rows: the real ``assay serve`` without workers, with requests from this process on the same machine."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from tests.bench.http_load import Load, Wire, as_fast_as_answered, at_a_rate, request
from tests.fakes.program import environment_for, private_database, running_service
from tests.fakes.warm_start import COLD

SUBMISSIONS_PER_S = 200
SUBMISSION_S = 10
AT_ONCE = 16
POLLS = 8000
POLLERS = 32
STREAMS = 500
ROUNDS = 10
QUEUED = 100_000
LEASES = 500
_WORDS = "word " * 1200
_TASK = "karrow_visit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Measured times in seconds; lists are sorted."""

    submitted: Load
    submitted_at_most: Load
    polled: Load
    events_late_s: Sequence[float]
    leases_s: Sequence[float]
    server_cpu_ms_per_poll: float


def measure() -> Seen:
    """Start the service, apply the load, and stop it."""
    home = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    home.chmod(0o755)
    try:
        with running_service(
            home, environment_for(home, ASSAY_RATE_PER_S="0"), "--workers", "0", program=COLD
        ) as service:
            times = psutil.Process(service.process.pid).cpu_times
            address = ("127.0.0.1", service.port)
            return asyncio.run(_measure(address, private_database(home), lambda: sum(times()[:2])))
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _measure(address: tuple[str, int], database_url: str, cpu_s: Callable[[], float]) -> Seen:
    await as_fast_as_answered(address, [_submission(-n) for n in range(1, 200)], status=202, at_once=AT_ONCE)  # warm up
    steady = [_submission(n) for n in range(SUBMISSIONS_PER_S * SUBMISSION_S)]
    submitted = await at_a_rate(address, steady, status=202, per_s=SUBMISSIONS_PER_S, wires=64)
    many = [_submission(n) for n in range(10_000, 11_500)]
    at_most = await as_fast_as_answered(address, many, status=202, at_once=AT_ONCE)
    ids = await _job_ids(address, STREAMS)
    polls = [request("GET", f"/v1/jobs/{ids[n % len(ids)]}") for n in range(POLLS)]
    before = cpu_s()
    polled = await as_fast_as_answered(address, polls, status=200, at_once=POLLERS)
    cpu_ms = 1000 * (cpu_s() - before) / POLLS
    late = await _events(address, database_url, ids)
    leases = await _leases(database_url)
    return Seen(
        submitted=submitted,
        submitted_at_most=at_most,
        polled=polled,
        events_late_s=late,
        leases_s=leases,
        server_cpu_ms_per_poll=cpu_ms,
    )


def _submission(nth: int) -> bytes:
    """Return a submission of six kilobytes; no two are equal."""
    answers = [{"name": "answer_1", "text": f"Answer {nth}. {_WORDS}"}]
    return request("POST", "/v1/submissions", json.dumps({"agent": "a", "task_id": _TASK, "answers": answers}).encode())


async def _job_ids(address: tuple[str, int], count: int) -> list[str]:
    wire, cursor = await Wire.connect(address), ""
    ids: list[str] = []
    while len(ids) < count:
        page = await wire.ask(request("GET", f"/v1/jobs?limit=200{cursor}"), 200)
        listed = json.loads(page.partition(b"\r\n\r\n")[2])
        ids += [job["id"] for job in listed["items"]]
        cursor = f"&cursor={listed['next_cursor']}"
    wire.close()
    return ids[:count]


class _Reader(asyncio.Protocol):
    """One event stream, with the arrival time of each event."""

    def __init__(self, job_id: str) -> None:
        self._request = request("GET", f"/v1/jobs/{job_id}/events")
        self.came: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.came += [time.perf_counter()] * data.count(b"data: ")


async def _events(address: tuple[str, int], database_url: str, ids: Sequence[str]) -> list[float]:
    """Return the delays of events: every job changes once a second, and each has a stream."""
    readers = [_Reader(job_id) for job_id in ids]
    loop = asyncio.get_running_loop()
    for reader in readers:
        await loop.create_connection(lambda reader=reader: reader, *address)  # type: ignore[misc]
    while not all(reader.came for reader in readers):  # noqa: ASYNC110 - the protocols have no event in common
        await asyncio.sleep(0.05)
    late: list[float] = []
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        for _ in range(ROUNDS):
            for reader in readers:
                reader.came.clear()
            await connection.execute(
                "WITH changed AS (UPDATE jobs SET revision = revision + 1, leaves_done = leaves_done + 1"
                " WHERE id = ANY(%s) RETURNING id) SELECT pg_notify('assay_jobs', id) FROM changed",
                [list(ids)],
            )
            changed = time.perf_counter()
            await asyncio.sleep(1.0)
            late += [max(0.0, reader.came[0] - changed) if reader.came else 1.0 for reader in readers]
    for reader in readers:
        reader.transport.abort()
    return sorted(late)


async def _leases(database_url: str) -> list[float]:
    """Return the times until a worker has its next entry while so many are queued."""
    took = []
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args)"
            " SELECT 'answers', 'assay.judge_answer', 0, '{}' FROM generate_series(1, %s)",
            [QUEUED],
        )
        await connection.execute("ANALYZE procrastinate_jobs")  # the service does this itself (app.jobs.queue)
        row = await (await connection.execute("SELECT worker_id FROM procrastinate_register_worker_v1()")).fetchone()
        assert row is not None
        for _ in range(LEASES):
            began = time.perf_counter()
            await connection.execute("SELECT * FROM procrastinate_fetch_job_v2(ARRAY['answers']::varchar[], %s)", row)
            took.append(time.perf_counter() - began)
    return sorted(took)
