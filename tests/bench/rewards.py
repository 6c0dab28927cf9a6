"""Verification of rollouts over HTTP, with a model of known latency.

The rollouts are those of a training step: 16 prompts, 32 answers each, of 1 to 4 KB, with 1 to 6 citations of 8 pages
per prompt. The pages are captured and the claims on them are judged before. Each rollout is then one extraction, which
only its own answer needs, so the model's own time is its latency, once. The rest of the time of a verification is
overhead. It includes the client and the stand-in model, which share the machine.

If the user may do so (root), all processes of the measurement get real-time priority, so that other programs on the
machine do not delay them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psutil

from tests.bench.http_load import Wire, request
from tests.bench.model import running_model
from tests.bench.pages import prose
from tests.fakes.program import RunningService, environment_for, running_service
from tests.fakes.warm_start import COLD
from tests.standin.web import Reply, StandInWeb

PROMPTS = 16
PER_PROMPT = 32
AT_ONCE = PROMPTS * PER_PROMPT
PAGES_PER_PROMPT = 8
_MODEL = "gpt-4.1"
_PAUSE_S = 5.0
"""Time after the captures in which the service closes its browser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Measured times. ``overheads_s`` (seconds, sorted) are the times of verifications above the model's latency."""

    overheads_s: Sequence[float]
    cpu_ms: float
    """Processor time of the service per verification, in milliseconds."""
    masked: int
    conditions: str
    """Load average and priority during the measurement."""

    def overhead_s(self, share: float) -> float:
        return self.overheads_s[min(len(self.overheads_s) - 1, int(share * len(self.overheads_s)))]


def burst() -> list[float]:
    """Return the arrival times (seconds) of one training step whose rollouts are sent at once."""
    return [0.0] * AT_ONCE


def stream(per_s: float, seconds: float) -> list[float]:
    """Return random arrival times (seconds) with a constant rate: rollouts that end at different times."""
    random, at = Random(0), 0.0
    times = []
    while (at := at + random.expovariate(per_s)) < seconds:
        times.append(at)
    return times


def measure(phases: Sequence[Sequence[float]], *, model_s: float) -> list[Seen]:
    """Start the service with a model of the latency ``model_s``, and verify different rollouts in each phase.

    A phase consists of the arrival times (seconds) of its rollouts. The next phase begins when all are verified.
    """
    home = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    home.chmod(0o755)
    try:
        with running_model(delay_s=model_s, quotes=True) as model:
            load = partial(_load, home, phases, model_s)
            return asyncio.run(_with_service(home, model.base_url, load))
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _with_service(
    home: Path, model_url: str, load: Callable[[RunningService, int], Awaitable[list[Seen]]]
) -> list[Seen]:
    """Return the result of ``load``, which is called with the service and the port of the web server."""
    async with StandInWeb(dict(_pages())) as web:
        environment = environment_for(
            home,
            ASSAY_MODEL=f"openai/{_MODEL}",
            OPENAI_BASE_URL=model_url,
            OPENAI_API_KEY="bench",
            ASSAY_EGRESS_ALLOW=f"127.0.0.1:{web.port}",
            ASSAY_MAX_LLM=str(4 * AT_ONCE),
            ASSAY_RATE_PER_S="0",
        )
        service = running_service(home, environment, "--workers", "0", program=COLD)
        running = await asyncio.to_thread(service.__enter__)
        try:
            return await load(running, web.port)
        finally:
            await asyncio.to_thread(service.__exit__, None, None, None)


async def _load(
    home: Path, phases: Sequence[Sequence[float]], model_s: float, service: RunningService, web_port: int
) -> list[Seen]:
    loop = asyncio.get_running_loop()
    free: list[Wire] = []
    connect = partial(Wire.connect, ("127.0.0.1", service.port))
    overheads: list[float] = []
    masked = 0

    async def verify(body: bytes, due: float) -> None:
        nonlocal masked
        wire = free.pop() if free and free[-1].is_open else await connect()
        answer = await wire.ask(body, 200)
        overheads.append(loop.time() - due - model_s)
        masked += b'"mask": true' in answer
        free.append(wire)

    async with asyncio.TaskGroup() as group:  # captures the pages, and judges the claims that all rollouts share
        for body in _first_rollouts(web_port):
            group.create_task(verify(body, loop.time()))
    await asyncio.sleep(_PAUSE_S)
    process = psutil.Process(service.process.pid)
    found: list[Seen] = []
    count = 0
    for arrivals in phases:
        overheads, masked = [], 0
        free.clear()  # the server closes connections that were idle since the last phase
        bodies = [_rollout(count + number, web_port) for number in range(len(arrivals))]
        count += len(bodies)
        with _real_time_priority(home) as priority:
            cpu_before, began = sum(process.cpu_times()[:2]), loop.time()
            async with asyncio.TaskGroup() as group:
                for after_s, body in zip(arrivals, bodies, strict=True):
                    if (wait_s := began + after_s - loop.time()) > 0:
                        await asyncio.sleep(wait_s)
                    group.create_task(verify(body, began + after_s))
            cpu_ms = 1000 * (sum(process.cpu_times()[:2]) - cpu_before) / len(bodies)
        conditions = f"load {os.getloadavg()[0]:.0f}, {priority} priority"
        found.append(Seen(overheads_s=sorted(overheads), cpu_ms=cpu_ms, masked=masked, conditions=conditions))
    return found


@contextmanager
def _real_time_priority(home: Path) -> Iterator[str]:
    """Give this process, its children and the database in ``home`` real-time priority during the block.

    Yield ``real-time``, or ``normal`` if the user may not change priorities.
    """
    database = int((home / "data/postgres/postmaster.pid").read_text().splitlines()[0])
    try:
        _schedule(os.SCHED_RR, 1, database)
    except PermissionError:
        yield "normal"
        return
    try:
        yield "real-time"
    finally:
        _schedule(os.SCHED_OTHER, 0, database)


def _schedule(policy: int, priority: int, database: int) -> None:
    for parent in (psutil.Process(), psutil.Process(database)):
        for process in (parent, *parent.children(recursive=True)):
            with suppress(FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):  # it has ended
                for thread in process.threads():
                    os.sched_setscheduler(thread.id, policy, os.sched_param(priority))


def _names(prompt: int, page: int) -> tuple[str, str]:
    """Return what a right and a wrong rollout call the subject of a page."""
    return f"Velm Institute {prompt}-{page}", f"Velm Academy {prompt}-{page}"


def _claim(prompt: int, name: str) -> str:
    return f"{name} is the institute number {prompt} of the harbor board."


def _pages() -> Iterator[tuple[str, Reply]]:
    for prompt in range(PROMPTS):
        for page in range(PAGES_PER_PROMPT):
            random, fact = Random(f"page {prompt} {page}"), _claim(prompt, _names(prompt, page)[0])
            paragraphs = "".join(f"<p>{prose(random, 600)}</p>" for _ in range(random.randint(4, 50)))
            yield f"/{prompt}/{page}", Reply.html(f"<h1>{fact}</h1><p>{fact}</p>{paragraphs}")


def _rubric(prompt: int) -> dict[str, Any]:
    return {
        "format": 1,
        "description": f"Which institutes with the number {prompt} does the harbor board have? Cite a page for each.",
        "fields": {
            "entries": {"list_of": {"name": "name of the institute", "urls": {"list_of": "url"}}},
        },
        "rubric": {
            "parallel": {
                "given": {"check": "count(entries) >= 1"},
                "institutes": {
                    "for_each": "entries",
                    "as": "entry",
                    "each": {"claim": _claim(prompt, "{entry.name}"), "sources": "entry.urls", "weight": 3},
                },
            }
        },
    }


def _first_rollouts(web_port: int) -> Iterator[bytes]:
    for prompt in range(PROMPTS):
        for kind in range(2):
            entries = [(_names(prompt, page)[kind], page) for page in range(PAGES_PER_PROMPT)]
            yield _body(prompt, entries, Random(f"first {prompt} {kind}"), web_port)


def _rollout(number: int, web_port: int) -> bytes:
    random = Random(f"rollout {number}")
    prompt = number % PROMPTS
    cited = random.sample(range(PAGES_PER_PROMPT), random.randint(1, 6))
    return _body(prompt, [(_names(prompt, page)[random.random() < 0.3], page) for page in cited], random, web_port)


def _body(prompt: int, entries: Sequence[tuple[str, int]], random: Random, web_port: int) -> bytes:
    body = {"rubric": _rubric(prompt), "answer": _answer(prompt, entries, random, web_port), "deadline_s": 600}
    return request("POST", "/v1/verify", json.dumps(body).encode())


def _answer(prompt: int, entries: Sequence[tuple[str, int]], random: Random, web_port: int) -> str:
    lines = [
        f"{place}. **{name}** [source](http://127.0.0.1:{web_port}/{prompt}/{page})"
        for place, (name, page) in enumerate(entries, start=1)
    ]
    return "\n\n".join([prose(random, random.randint(800, 2000)), "\n".join(lines), prose(random, 300)])
