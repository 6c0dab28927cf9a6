"""Cost of a block of work in this process: time, CPU time, memory, and blocking of the event loop."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

TICK_S = 0.005
SETTLE_S = 3.0
"""Freed memory is returned to the system about one second after the last picture."""
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(slots=True)
class MeasuredCost:
    """Measured cost, complete after the block. Seconds and bytes; ``cpu_s`` includes child processes.

    ``late_s`` is the delay of each tick of the event loop. ``held_s`` is the part of it in which the loop's own
    thread was computing, which excludes the effect of other processes. ``end_bytes`` is the memory in use ``SETTLE_S``
    after the block.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    start_bytes: int = 0
    peak_bytes: int = 0
    end_bytes: int = 0
    late_s: list[float] = field(default_factory=list)
    held_s: list[float] = field(default_factory=list)


@asynccontextmanager
async def measured_cost(*, ticks: bool) -> AsyncIterator[MeasuredCost]:
    """Measure the cost of the block. ``ticks``: also measure the event loop, which costs some CPU time."""
    cost = MeasuredCost()
    ticking = asyncio.create_task(_tick(cost) if ticks else asyncio.sleep(0))
    await asyncio.sleep(0)
    cost.start_bytes = _reset_peak_memory()
    cpu, wall = _cpu_s(), time.perf_counter()
    try:
        yield cost
    finally:
        cost.wall_s, cost.cpu_s = time.perf_counter() - wall, _cpu_s() - cpu
        cost.peak_bytes = _memory("VmHWM")
        ticking.cancel()
        await asyncio.wait([ticking])
        await asyncio.sleep(SETTLE_S)
        cost.end_bytes = _memory("VmRSS")


async def _tick(cost: MeasuredCost) -> None:
    while True:
        due, busy = time.perf_counter() + TICK_S, time.thread_time()
        await asyncio.sleep(TICK_S)
        late = max(0.0, time.perf_counter() - due)
        cost.late_s.append(late)
        cost.held_s.append(min(late, time.thread_time() - busy))


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of ``values`` does not exceed; 0.0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def family(pid: int | None = None) -> list[psutil.Process]:
    """Return a process (default: this one) and all below it."""
    try:
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def family_cpu_s(pid: int | None = None) -> float:
    """Return the CPU time of a process (default: this one) and all below it, with ended ones."""
    return sum(map(_cpu_s_of, family(pid)))


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(map(_cpu_s_of, psutil.Process().children()))


def _cpu_s_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a running process, with ended processes below it: judge processes end below their fork
    server.
    """
    try:
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(used.user + used.system + used.children_user + used.children_system)


def _reset_peak_memory() -> int:
    """Reset the kernel's peak memory counter, so that imports do not count. Return the memory in use in bytes."""
    _CLEAR.write_text("5", encoding="ascii")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    """Return a line of ``/proc/self/status``, in bytes."""
    line = next(line for line in _STATUS.read_text("ascii").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
