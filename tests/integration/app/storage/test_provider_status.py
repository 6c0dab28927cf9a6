"""Provider status shared by workers with one key, each with its own circuit breaker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import pytest
from sqlalchemy import text

from app.storage.database import connect_database
from app.storage.provider_status import SharedProviderStatus
from judges.errors import LLMCircuitOpen, LLMRejected, RejectionScope
from judges.llm.circuit import CircuitBreaker, CircuitState
from tests.fakes.llm import patient_circuits  # noqa: F401 - fixture

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("patient_circuits")]


KEY, MODEL = "openai:abc", "gpt-6-luna"
REFUSED = LLMRejected("401 wrong key sk-canary", status=401, scope=RejectionScope.ENDPOINT)


@dataclass
class Provider:
    """Provider that counts its calls. ``works``: whether it succeeds; ``seconds``: duration of each reply."""

    works: bool = False
    calls: int = 0
    seconds: float = 0.1

    async def ask(self, circuit: CircuitBreaker) -> None:
        await circuit.wait_for_first_request(MODEL)
        async with circuit.attempt(MODEL):
            self.calls += 1
            await asyncio.sleep(self.seconds)
            if not self.works:
                raise REFUSED


@dataclass
class Process:
    status: SharedProviderStatus
    circuit: CircuitBreaker


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@pytest.fixture
async def processes(database_url: str) -> AsyncIterator[list[Process]]:
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(3):
            database = await stack.enter_async_context(connect_database(database_url))
            status = SharedProviderStatus(database, redact=lambda said: said.replace("sk-canary", "[redacted]"))
            circuit = CircuitBreaker()
            status.register(KEY, circuit)
            await status.update_pauses()  # SQLAlchemy leaks its first connection if it is cancelled while it opens it
            listening = asyncio.create_task(status.run())
            stack.push_async_callback(_end, listening)
            found.append(Process(status, circuit))
        yield found


async def wait_for_state(process: Process, state: CircuitState) -> None:
    async with asyncio.timeout(240):
        while process.circuit.state(MODEL) is not state:  # noqa: ASYNC110 - set by another process
            await asyncio.sleep(0.05)


async def test_invalid_key_costs_one_call_across_concurrent_workers(processes: list[Process]):
    provider = Provider(seconds=0.02)
    asked = [provider.ask(process.circuit) for process in processes for _ in range(10)]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert provider.calls == 1
    assert sum(isinstance(one, LLMCircuitOpen) for one in ended) == len(ended) - 1


async def test_recovery_is_probed_once_and_shared(processes: list[Process], database_url: str):
    with suppress(LLMRejected):
        await Provider().ask(processes[0].circuit)
    for process in processes:
        await wait_for_state(process, CircuitState.OPEN)
    async with connect_database(database_url) as database, database.begin() as connection:
        await connection.execute(text("UPDATE provider_status SET probed_at = probed_at - interval '10 s'"))
    processes[2].status.request_probe("openai")
    for process in processes[:2]:
        await wait_for_state(process, CircuitState.HALF_OPEN)
    working = Provider(works=True, seconds=0.02)
    asked = [working.ask(process.circuit) for process in processes[:2]]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert working.calls == 1
    assert [isinstance(one, LLMCircuitOpen) for one in ended].count(True) == 1
    async with asyncio.timeout(240):
        for process in processes:
            while process.circuit.rejection(MODEL) is not None:  # noqa: ASYNC110 - set by another process
                await asyncio.sleep(0.05)


async def test_lost_database_leaves_local_status_in_effect(processes: list[Process], database_url: str):
    circuit = processes[0].circuit
    async with connect_database("postgresql://postgres@/nowhere?host=/nowhere") as lost:
        status = SharedProviderStatus(lost, redact=str)
        status.register(KEY, circuit)
        provider = Provider(works=True)
        await provider.ask(circuit)
    assert (provider.calls, circuit.state(MODEL)) == (1, CircuitState.CLOSED)
