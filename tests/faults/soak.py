"""Soak test: ``python -m tests.faults.soak``. Eight clients submit 300 answers over HTTP while two workers are killed.

Every answer cites 10 of 60 pages. One process serves the API, three work, on a private PostgreSQL; only the model and
the web are replaced. Prints results, duplicates, captures, and memory and open files at the end. Takes minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import text

from app.storage.database import Database, connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from tests.faults.fork_server import WorkerForkServer, worker_url
from tests.standin.llm import StandInLLM
from tests.standin.rules import seeded_rule

ANSWERS, CITATIONS, PAGES, CLIENTS, WORKERS = 300, 10, 60, 8, 3
KILLED_AFTER = (60, 150)
"""Numbers of results after which a worker is killed."""
TASK = "soak"
JUDGE = f"""
from judges.registry import judge

@judge(task={TASK!r}, description="Soak.")
async def soak(ctx):
    for number, line in enumerate(ctx.answer.text.splitlines()):
        url = line.partition("](")[2].rstrip(")")
        ctx.verify(f"claim_{{number}}", f"Fact {{number}} holds", sources=[url])
"""
TEXTS = {
    f"https://pages.example/{number}": f"Page {number} has an ordinary text about many things. " * 20
    for number in range(PAGES)
}
WITHIN_S = 1800.0


@asynccontextmanager
async def private_database() -> AsyncIterator[tuple[Database, Path]]:
    """Open the database of a private PostgreSQL server, with the folder that is removed with it."""
    folder = _folder()
    server = EmbeddedPostgres(folder)
    url = await asyncio.to_thread(server.start)
    try:
        async with connect_database(url) as database:
            async with database.begin() as connection:
                await migrate(connection)
            yield database, folder
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    """Return a new folder that the database account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    folder.chmod(0o755)
    return folder


async def soak(database: Database, folder: Path) -> bool:
    """Run the test, print its figures and return whether nothing was lost, doubled or captured twice."""
    (folder / "judges").mkdir()
    (folder / "judges" / "soak.py").write_text(JUDGE)
    draw = random.Random(47)
    answers = [
        "\n".join(f"- [Fact {n}]({url})" for n, url in enumerate(draw.sample(sorted(TEXTS), CITATIONS)))
        for _ in range(ANSWERS)
    ]
    began = time.monotonic()
    async with asyncio.timeout(WITHIN_S), StandInLLM(rule=seeded_rule(47, pass_rate=0.6), delay_s=0.02) as model:
        settings = {
            "data_dir": str(folder),
            "database_url": worker_url(database),
            "model": "openai/gpt-6-luna",
            "openai_base_url": model.base_url,
            "stalled_s": 5.0,
        }
        options = {
            "settings": settings,
            "judges": str(folder / "judges"),
            "pages": TEXTS,
            "data_folder": str(folder / "kept"),
            "locks_captures": True,
        }
        with WorkerForkServer(folder / "workers.log") as fork_server:
            api = psutil.Process(fork_server.start(socket=str(folder / "api.sock"), **options))
            workers = [psutil.Process(fork_server.start(**options)) for _ in range(WORKERS)]
            await _submit_all(
                str(folder / "api.sock"), answers, database, workers, lambda: fork_server.start(**options)
            )
            await _reaches(database, ANSWERS)
            figures = await _figures(database)
            processes = {"API": api} | {f"worker {n}": worker for n, worker in enumerate(workers, start=1)}
            usage = [
                f"{name}: {process.memory_info().rss / 2**20:.0f} MiB, {process.num_fds()} open files"
                for name, process in processes.items()
            ]
    print(f"{time.monotonic() - began:.0f} s, {len(KILLED_AFTER)} workers killed, {len(model.calls)} model requests")
    print(", ".join(f"{name}: {number}" for name, number in figures.items()))
    print(*usage, sep="\n")
    expected = {"succeeded": ANSWERS, "results": ANSWERS, "doubled": 0, "captures": PAGES}
    return {name: figures[name] for name in expected} == expected


async def _submit_all(
    socket: str, answers: list[str], database: Database, workers: list[psutil.Process], start: Any
) -> None:
    numbered = iter(enumerate(answers))
    transport = httpx.AsyncHTTPTransport(uds=socket)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=240.0) as client:
        while True:
            try:
                await client.get("/healthz")
                break
            except httpx.TransportError:
                await asyncio.sleep(0.1)

        async def submit(number: int) -> None:
            for index, answer in numbered:
                body = {
                    "agent": f"client-{number}",
                    "task_id": TASK,
                    "answers": [{"name": f"answer_{index}", "text": answer}],
                }
                (await client.post("/v1/submissions", json=body)).raise_for_status()

        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(submit(number))
            for place, results in zip(itertools.cycle(range(WORKERS)), KILLED_AFTER, strict=False):
                await _reaches(database, results)
                os.kill(workers[place].pid, signal.SIGKILL)
                workers[place] = psutil.Process(await asyncio.to_thread(start))


async def _reaches(database: Database, results: int) -> None:
    while (await _figures(database))["results"] < results:  # noqa: ASYNC110 - the state is in the database
        await asyncio.sleep(2.0)


async def _figures(database: Database) -> dict[str, int]:
    query = """
        SELECT (SELECT count(*) FROM jobs WHERE status = 'succeeded') AS succeeded,
               (SELECT count(*) FROM results) AS results,
               (SELECT count(*) - count(DISTINCT job_id) FROM results) AS doubled,
               (SELECT count(*) FROM captures) AS captures,
               (SELECT coalesce(max(attempts), 0) FROM jobs) AS most_attempts
    """
    async with database.begin() as connection:
        return {name: int(number) for name, number in (await connection.execute(text(query))).mappings().one().items()}


async def main() -> bool:
    """Run the test on a private PostgreSQL."""
    async with private_database() as (database, folder):
        return await soak(database, folder)


if __name__ == "__main__":
    sys.exit(not asyncio.run(main()))
