"""Attack: a task file that writes to the sockets of its process to exhaust the service.

Each attack costs its own job and no other: the service's memory, its event loop and a job that runs at the same time
are hardly affected.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from judges.errors import JudgeBug
from judges.isolation.fork_server_pool import ForkServerPool
from tests.bench.row import MIB
from tests.bench.watching import measured_cost
from tests.fakes.judge_processes import open_process_pool, run_public_script, script

MAX_GROWTH_BYTES = 250 * MIB
MAX_HELD_S = 2.0
"""CPU seconds for which the event loop may be blocked: ten times what an idle machine needs."""

FLOOD = """
import gc, select, socket, struct
from judges.isolation.remote import RpcClient

def flood(body, times=1):
    [client] = [each for each in gc.get_objects() if isinstance(each, RpcClient)]
    to = socket.socket(fileno=os.dup(client._main_socket.fileno()))
    try:
        for number in range(times):
            left = memoryview(body.replace(b"NUMBER", str(number).encode()))
            left = memoryview(struct.pack(">I", len(left)) + left)
            while left:
                select.select([], [to], [])
                left = left[to.send(left[:65536]):]
    except OSError:
        pass
"""
ATTACKS = {
    "objects_in_15_mb": 'flood(b\'{"done":[\' + b"{}," * 5_000_000 + b"{}]}")',
    "long_strings_in_many_calls": (
        'flood(b\'{"call":"complete","id":NUMBER,"with":{"x":"\' + b"y" * 15_000_000 + b\'"}}\', times=150)'
    ),
    "replies_that_are_not_read": (
        'flood(b\'{"call":"evidence","id":NUMBER,"with":'
        '{"run":"real","url":"https://shop.example/one","content":"page"}}\', times=5_000)'
    ),
    "deep_nesting": 'flood(b"[" * 10_000_000)',
}


@pytest.fixture
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool() as pool:
        yield pool


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attack_costs_its_own_job_and_no_other(
    process_pool: ForkServerPool, tmp_path: Path, attack: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    hostile = script(tmp_path, f"await asyncio.to_thread(lambda: {ATTACKS[attack]})\ntime.sleep(3)", above=FLOOD)
    honest = script(tmp_path, name="honest")
    async with measured_cost(ticks=True) as cost:
        sibling = asyncio.create_task(run_public_script(honest, process_pool, deadline_s=300))
        with suppress(JudgeBug):
            await run_public_script(hostile, process_pool, deadline_s=20)
        assert (await sibling)["final_score"] == 1.0
    assert cost.peak_bytes - cost.start_bytes < MAX_GROWTH_BYTES, (cost.peak_bytes - cost.start_bytes) / MIB
    assert max(cost.held_s) < MAX_HELD_S, max(cost.held_s)
