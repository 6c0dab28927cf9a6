"""Verification of rollouts over HTTP, many at once, with a model of known latency.

Each rollout is one extraction, which only its own answer needs, and two claims on pages, which all rollouts share. The
model's own time is therefore its latency, once. The rest of the time of a verification is overhead.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.bench.http_load import Wire, request
from tests.bench.model import running_model
from tests.fakes.program import environment_for, running_service
from tests.fakes.warm_start import COLD
from tests.standin.web import Reply, StandInWeb

AT_ONCE = 512
ROUNDS = 4
MODEL_S = 10.0
"""Latency of the model, less than that of the default model with its reasoning effort."""
_MODEL = "gpt-4.1"
_HEADINGS = ("Velm Institute", "Ida Norrstad")
_TEXT = "It stands on the hill above the harbor, next to the lighthouse. " * 30
_RUBRIC: dict[str, Any] = {
    "format": 1,
    "description": "Name the institute with its pages.",
    "fields": {"name": "name of the institute", "title": "its title", "urls": {"list_of": "url"}},
    "rubric": {
        "parallel": {
            "name": {"claim": "{name}", "sources": "urls", "weight": 3},
            "title": {"claim": "{title} ", "sources": "urls"},
        }
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Measured times. ``overheads_s`` (seconds, sorted) are the times of verifications above the model's latency."""

    overheads_s: Sequence[float]
    per_s: float
    cpu_ms: float
    """Processor time of the service per verification, in milliseconds."""
    masked: int

    def overhead_s(self, share: float) -> float:
        return self.overheads_s[min(len(self.overheads_s) - 1, int(share * len(self.overheads_s)))]


def measure(*, at_once: int = AT_ONCE, model_s: float = MODEL_S, rounds: int = ROUNDS) -> Seen:
    """Start the service with a model, verify ``rounds`` rollouts on each of ``at_once`` connections, and stop it."""
    home = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    home.chmod(0o755)
    try:
        with running_model(delay_s=model_s, quotes=True) as model:
            return asyncio.run(_measure(home, model.base_url, at_once=at_once, model_s=model_s, rounds=rounds))
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _measure(home: Path, model_url: str, *, at_once: int, model_s: float, rounds: int) -> Seen:
    pages = {
        f"/{number}": Reply.html(f"<h1>{name}</h1><p>{name}. {_TEXT}</p>") for number, name in enumerate(_HEADINGS)
    }
    async with StandInWeb(pages) as web:
        environment = environment_for(
            home,
            ASSAY_MODEL=f"openai/{_MODEL}",
            OPENAI_BASE_URL=model_url,
            OPENAI_API_KEY="bench",
            ASSAY_EGRESS_ALLOW=f"127.0.0.1:{web.port}",
            ASSAY_MAX_LLM=str(2 * at_once),
            ASSAY_RATE_PER_S="0",
        )
        service = running_service(home, environment, "--workers", "0", program=COLD)
        running = await asyncio.to_thread(service.__enter__)
        try:
            return await _load(running.process.pid, running.port, web.port, at_once, model_s, rounds)
        finally:
            await asyncio.to_thread(service.__exit__, None, None, None)


async def _load(pid: int, port: int, web_port: int, at_once: int, model_s: float, rounds: int) -> Seen:
    overheads: list[float] = []
    masked = 0

    async def verify(wire: Wire, number: int) -> float:
        nonlocal masked
        began = asyncio.get_running_loop().time()
        answer = await wire.ask(_rollout(number, web_port), 200)
        took = asyncio.get_running_loop().time() - began
        masked += b'"mask": true' in answer
        return took

    async def one(position: int) -> None:
        # In a training run, rollouts end at different times.
        await asyncio.sleep(model_s * random.Random(position).random())
        wire = await Wire.connect(("127.0.0.1", port))  # the server closes idle connections
        for nth in range(rounds):
            overheads.append(await verify(wire, 1 + position * rounds + nth) - model_s)
        wire.close()

    first = await Wire.connect(("127.0.0.1", port))
    await verify(first, 0)  # captures the pages, and judges the claims that all rollouts share
    first.close()
    process = psutil.Process(pid)
    cpu_before, began = sum(process.cpu_times()[:2]), asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for position in range(at_once):
            group.create_task(one(position))
    cpu_s, wall_s = sum(process.cpu_times()[:2]) - cpu_before, asyncio.get_running_loop().time() - began
    count = len(overheads)
    return Seen(overheads_s=sorted(overheads), per_s=count / wall_s, cpu_ms=1000 * cpu_s / count, masked=masked)


def _rollout(number: int, web_port: int) -> bytes:
    entries = "\n".join(
        f"{place}. **{name}** [source](http://127.0.0.1:{web_port}/{place - 1})"
        for place, name in enumerate(_HEADINGS, start=1)
    )
    body = {"rubric": _RUBRIC, "answer": f"Rollout {number}.\n\n{entries}\n", "deadline_s": 600}
    return request("POST", "/v1/verify", json.dumps(body).encode())
